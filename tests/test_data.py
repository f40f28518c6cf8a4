"""The data cache is where the user wants it."""

from workbench import data


def test_the_cache_is_the_platforms_or_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    assert data.cache_folder().name == "workbench"
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert data.cache_folder() == tmp_path
