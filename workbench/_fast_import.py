"""Imported for its effect, before nbformat: start a second or two sooner.

nbformat imports jsonschema, which builds the grammars of RFC 3987 addresses and ISO 8601 durations
whenever the packages for them are installed. Notebooks need no such checks; jsonschema does without
what cannot be imported.
"""

import sys

for package in ("rfc3987_syntax", "isoduration"):
    sys.modules.setdefault(package, None)
