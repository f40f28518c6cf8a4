"""Imported for its effect, before nbformat: start a second or two sooner.

nbformat imports jsonschema, which builds the grammar of RFC 3987 addresses whenever the package
for it is installed. Notebooks need no such check; jsonschema does without what cannot be imported.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
