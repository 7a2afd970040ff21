"""Where documents come from: files and their kinds, what is read of them, a reader a kind; and what text must be."""

from __future__ import annotations

from pkgutil import extend_path

# Run from a checkout, this folder comes first on sys.path but what was built lies in site-packages/corpus.
__path__ = extend_path(__path__, __name__)
