"""A download that goes on where it stopped: what pooch lacks.

What has come is kept beside the file, as FILE.part, with the version that it is of (the server's
ETag or date) as FILE.part.etag. The next attempt asks for the rest of that version only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30.0  # of a connection, and of a pause within a download
CHUNK_BYTES = 1 << 15
PART, VERSION = ".part", ".part.etag"
ENDINGS = (PART, VERSION)  # of the files that an unfinished download leaves


def resume(
    url: str,
    output_file: str,
    _: Any,
    *,
    part: Path,
    size: int | None,
    checked: bool,
    progress: bool,
) -> None:
    """A downloader for pooch: complete `part` in as many attempts as bring something, and move it.

    size: the bytes expected, if known. checked: whether a checksum will be compared, so that
    continuing without a version is safe. Raises an error of requests, or OSError if the answer is
    not the file; what came is kept in both cases.
    """
    import requests

    while True:
        before = size_of(part)
        try:
            _receive(url, part, size, checked, progress)
            break
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
            if size_of(part) <= before:
                raise
    os.replace(part, output_file)
    _version_file(part).unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """Bytes of a file, 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def _version_file(part: Path) -> Path:
    return part.with_name(part.name.removesuffix(PART) + VERSION)


def _receive(url: str, part: Path, size: int | None, checked: bool, progress: bool) -> None:
    """One attempt to complete `part`."""
    import requests
    from tqdm import tqdm

    start, version_file = size_of(part), _version_file(part)
    if start and start == size:
        return  # it was stopped before it could be verified
    version = version_file.read_text(encoding="utf-8") if version_file.exists() else ""
    headers = {"Accept-Encoding": "identity"}  # the bytes that the checksum is of
    if start and (version or checked):  # else two versions might be mixed and nobody would know
        headers["Range"] = f"bytes={start}-"
        if version:
            headers["If-Range"] = version
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()  # it is no part of what is there now
            return _receive(url, part, size, checked, progress)
        answer.raise_for_status()
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise OSError(f"{urlsplit(url).hostname} answered with a web page")
        resumed = answer.status_code == requests.codes.partial_content
        start = start if resumed else 0
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else size
        if size and total != size:
            raise OSError(f"the file there has {total} bytes, expected are {size}")
        if not resumed:
            etag, date = (answer.headers.get(name, "") for name in ("ETag", "Last-Modified"))
            version_file.write_text(date if etag.startswith("W/") else etag or date, "utf-8")
        bar = tqdm(
            total=total, initial=start, desc=part.name.removesuffix(PART), unit="B",
            unit_scale=True, disable=None if progress else True,
        )  # fmt: skip
        with part.open("ab" if resumed else "wb") as out, bar:
            for chunk in answer.iter_content(CHUNK_BYTES):
                out.write(chunk)
                bar.update(len(chunk))
                if size and out.tell() > size:
                    break
    if size and size_of(part) > size:
        for path in (part, version_file):
            path.unlink()
        raise OSError(f"more than the expected {size} bytes came")
    if size and size_of(part) < size:
        raise requests.ConnectionError("the connection ended early")
