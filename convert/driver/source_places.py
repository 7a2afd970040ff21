"""Whether a dataset has the places of its sequences (seq_places): with `--source-places auto` where they are small
beside the tokens, which is where documents are not short.

This is known by a sample before work starts, not by the sizes of what was written: on a store, a task that counts as
lost may write its places late, after they would have been removed.
"""

from __future__ import annotations

from convert.options import ConvertOptions
from convert.planning.plan import Plan
from tokenmill.inputs.samples import samples_of

# A place takes up to 8 bytes, without compression, and the tokens of so much text 400.
LEAST_DOCUMENT_BYTES = 512


def has_places(plan: Plan, options: ConvertOptions) -> bool:
    """As --source-places says; auto: if the documents of a sample have LEAST_DOCUMENT_BYTES of text on average."""
    if options.source_places != "auto":
        return options.source_places == "yes"
    text_bytes = documents = 0.0
    for sample in samples_of(plan, options.intake_rules, options.separator_bytes, {}):
        text_bytes += int(sample.batch.offsets[-1])
        documents += sample.documents
    return text_bytes >= LEAST_DOCUMENT_BYTES * documents
