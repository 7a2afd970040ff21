"""What published tokenizer.json files say around their vocabulary: the table that tokenizer_files.py writes from.

One row a family: its pre-tokenizer, normalizer, added tokens with their flags, post-processor and `ignore_merges`,
as the files of the models have them. Sources: the files themselves where they are public, the expressions in
llama.cpp's llama-vocab.cpp (its "original regex from tokenizer.json"), the converters in transformers.
A row names vocabularies in order of preference. The family's own is seldom at hand, and the structure decides what is
measured; a vocabulary is chosen whose entries the pattern can reach: Kimi's text of Han alone takes DeepSeek's, whose
pattern cuts there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# -- expressions

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPELLED_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = (
    rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
)
SPELLED_CL100K = CL100K.replace(CONTRACTION, SPELLED_CONTRACTION)
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (
    rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}"
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
)
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
)
KIMI = r"[\p{Han}]+|" + O200K.replace(UPPER, UPPER[:-1] + r"&&[^\p{Han}]]").replace(
    LOWER, LOWER[:-1] + r"&&[^\p{Han}]]"
).replace(r"[\r\n/]*", r"[\r\n]*")
DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    # Line ends stand in it as themselves, not as escapes.
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)
NANOCHAT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
EXAONE_4 = (
    rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
AYA_DIGITS = r"\d{1,3}(?=(?:\d{3})*\b)"


# -- components


def byte_level(add_prefix_space: bool = False, trim_offsets: bool = True, use_regex: bool = True) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


def split(expression: str, behavior: str = "Isolated", invert: bool = False) -> Json:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}


def digits(individual: bool) -> Json:
    return {"type": "Digits", "individual_digits": individual}


def sequence(*pretokenizers: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(pretokenizers)}


def splits(*expressions: str, trim_offsets: bool = True) -> Json:
    """Splits one after another, then bytes: what files say that were converted from rank files."""
    return sequence(*map(split, expressions), byte_level(False, trim_offsets, False))


DIGITS_THEN_BYTES = sequence(digits(True), byte_level())
NFC: Json = {"type": "NFC"}
DECODER = byte_level(True, True, True)


# -- added tokens, post-processors


@dataclass(frozen=True)
class Added:
    """Added tokens of the same flags."""

    contents: tuple[str, ...]
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


def numbered(form: str, count: int) -> tuple[str, ...]:
    """numbered("<|{}|>", 2) -> ("<|0|>", "<|1|>")"""
    return tuple(form.format(number) for number in range(count))


def runs_of(character: str, longest: int) -> tuple[str, ...]:
    """Runs from the longest to two, in the order that GPT-NeoX and CodeGen have them."""
    return tuple(character * length for length in range(longest, 1, -1))


@dataclass(frozen=True)
class Template:
    """TemplateProcessing with these tokens around the text."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    with_byte_level: bool = False  # as one of a Sequence behind ByteLevel, as Llama 3 has it


@dataclass(frozen=True)
class Roberta:
    """RobertaProcessing with these two tokens."""

    cls: str
    sep: str


@dataclass(frozen=True)
class Published:
    """One family. vocabularies: names in order of preference. first: added tokens that have the lowest ids and stand in
    the vocabulary too; last: those behind its entries, which are only in `added_tokens`."""

    name: str
    vocabularies: tuple[str, ...]
    pre_tokenizer: Json
    first: tuple[Added, ...] = ()
    last: tuple[Added, ...] = (Added(("<|endoftext|>",)),)
    normalizer: Json | None = None
    post_processor: Json | Template | Roberta | None = None
    ignore_merges: bool = False


LLAMA_3_TOKENS = (
    "<|begin_of_text|> <|end_of_text|> <|reserved_special_token_0|> <|finetune_right_pad_id|> <|start_header_id|>"
    " <|end_header_id|> <|eom_id|> <|eot_id|> <|python_tag|>"
).split()
QWEN_TOKENS = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>"
    " <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"
).split()
QWEN_PLAIN = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>"
).split()
QWEN = (
    Added(tuple(QWEN_TOKENS)),
    Added((*QWEN_PLAIN, "<tool_response>", "</tool_response>", "<think>", "</think>"), special=False),
)
CODE_TOKENS = (
    "<|endoftext|> <fim_prefix> <fim_middle> <fim_suffix> <fim_pad> <repo_name> <file_sep> <issue_start>"
    " <issue_comment> <issue_closed> <jupyter_start> <jupyter_text> <jupyter_code> <jupyter_output> <empty_output>"
    " <commit_before> <commit_msg> <commit_after>"
).split()
COHERE_TOKENS = "<PAD> <UNK> <CLS> <SEP> <MASK_TOKEN> <BOS_TOKEN> <EOS_TOKEN> <EOP_TOKEN>".split()
DEEPSEEK_TOKENS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>")
PHI_4_TOKENS = "<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|im_start|> <|im_end|>".split()
ROBERTA_TOKENS = (Added(("<s>", "<pad>", "</s>", "<unk>"), normalized=True),)
NEOX_TOKENS = (Added(("<|endoftext|>", "<|padding|>")),)
NEOX_SPACES = Added(runs_of(" ", 24), special=False, normalized=True)

FAMILIES = (
    # -- GPT-2's pattern
    Published(
        "phi-2",
        ("gpt2",),
        byte_level(),
        last=(Added((*runs_of(" ", 31), *runs_of("\t", 9)), special=False, normalized=True),),
        post_processor=byte_level(True, False),
    ),
    Published(
        "whisper",
        ("gpt2",),
        byte_level(),
        last=(
            Added(
                (
                    "<|endoftext|>",
                    "<|startoftranscript|>",
                    "<|en|>",
                    "<|zh|>",
                    "<|translate|>",
                    "<|transcribe|>",
                )
            ),
            Added(("<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>")),
            Added(tuple(f"<|{step / 50:.2f}|>" for step in range(1501)), special=False),
        ),
        post_processor=Template(("<|startoftranscript|>", "<|notimestamps|>"), ("<|endoftext|>",)),
    ),
    Published(
        "roberta",
        ("gpt2",),
        byte_level(),
        first=ROBERTA_TOKENS,
        last=(Added(("<mask>",), normalized=True, lstrip=True),),
        post_processor=Roberta("<s>", "</s>"),
    ),
    Published(
        "roberta-prefix-space",
        ("gpt2",),
        byte_level(True),
        first=ROBERTA_TOKENS,
        last=(Added(("<mask>",), normalized=True, lstrip=True),),
        post_processor=Roberta("<s>", "</s>"),
    ),
    Published(
        "pythia",
        ("gpt2",),
        byte_level(),
        first=NEOX_TOKENS,
        last=(NEOX_SPACES,),
        normalizer=NFC,
        post_processor=byte_level(),
    ),
    Published(
        "modernbert",
        ("gpt2",),
        byte_level(),
        first=(Added(("|||IP_ADDRESS|||",), special=False, normalized=True), Added(("<|padding|>",))),
        last=(
            NEOX_SPACES,
            Added(("|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||"), special=False, normalized=True),
            Added(("<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]")),
            Added(("[MASK]",), lstrip=True),
            Added(numbered("[unused{}]", 83), special=False, normalized=True),
        ),
        normalizer=NFC,
        post_processor=Template(("[CLS]",), ("[SEP]",)),
    ),
    Published(
        "claude",
        ("gpt2",),
        byte_level(),
        first=(Added(("<EOT>", "<META>", "<META_START>", "<META_END>", "<SOS>")),),
        normalizer={"type": "NFKC"},
        post_processor=byte_level(),
    ),
    # -- digits first, then GPT-2's
    Published("smollm", ("gpt2",), DIGITS_THEN_BYTES, first=(Added(tuple(CODE_TOKENS[:17])),), last=()),
    Published("starcoder", ("gpt2",), DIGITS_THEN_BYTES, first=(Added(tuple(CODE_TOKENS)),), last=()),
    Published(
        "command-r",
        ("o200k", "gpt2"),
        DIGITS_THEN_BYTES,
        first=(Added(tuple(COHERE_TOKENS)),),
        last=(
            Added(("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|YES_TOKEN|>")),
            Added(numbered("<|EXTRA_{}_TOKEN|>", 10), special=False),
        ),
        normalizer=NFC,
        post_processor=Template(("<BOS_TOKEN>",)),
    ),
    Published(
        "falcon",  # Digits and the last Split cut the byte alphabet's characters, not the text's
        ("gpt2",),
        sequence(
            {"type": "Punctuation", "behavior": "Contiguous"},
            byte_level(),
            digits(False),
            split("[0-9][0-9][0-9]"),
        ),
        first=(Added((*(f">>{kind}<<" for kind in "TITLE ABSTRACT INTRODUCTION SUMMARY COMMENT".split()),)),),
    ),
    # -- cl100k's
    Published(
        "llama-3.1",
        ("llama3", "cl100k"),
        splits(CL100K),
        last=(Added((*LLAMA_3_TOKENS, *numbered("<|reserved_special_token_{}|>", 248)[1:])),),
        post_processor=Template(("<|begin_of_text|>",), with_byte_level=True),
        ignore_merges=True,
    ),
    Published(
        "falcon-3",
        ("llama3", "cl100k"),
        splits(SPELLED_CL100K),
        first=(Added((">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", *numbered(">>UNUSED_{}<<", 100))),),
        last=(Added(("<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>"), special=True),),
        ignore_merges=True,
    ),
    Published(
        "glm-4",
        ("qwen3", "cl100k"),
        splits(CL100K),
        last=(
            Added(("<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>")),
            Added(("<|user|>", "<|assistant|>", "<|observation|>")),
            Added(("<think>", "</think>", "<tool_call>", "</tool_call>"), special=False),
        ),
        post_processor=Template(("[gMASK]", "<sop>"), with_byte_level=True),
        ignore_merges=True,
    ),
    Published(
        "olmo-2",
        ("cl100k",),
        splits(CL100K),
        last=(
            Added(("|||IP_ADDRESS|||",), special=False, normalized=True),
            Added(("<|endoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>")),
            Added(("|||PHONE_NUMBER|||", "|||EMAIL_ADDRESS|||"), special=False, normalized=True),
        ),
    ),
    Published(
        "phi-4",
        ("cl100k",),
        sequence(split(CL100K, "Removed", True), byte_level(False, True, False)),
        last=(
            Added(tuple(PHI_4_TOKENS), lstrip=True, rstrip=True),
            Added(numbered("<|dummy_{}|>", 80), lstrip=True, rstrip=True),
        ),
        post_processor=byte_level(True, False),
    ),
    Published(
        "qwen-2.5",
        ("qwen3",),
        splits(QWEN2, trim_offsets=False),
        last=(Added(tuple(QWEN_TOKENS)), Added(tuple(QWEN_PLAIN), special=False)),
        normalizer=NFC,
        post_processor=byte_level(False, False, False),
    ),
    Published(
        "qwen-3",
        ("qwen3",),
        splits(QWEN2, trim_offsets=False),
        last=QWEN,
        normalizer=NFC,
        post_processor=byte_level(False, False, False),
    ),
    Published(
        "qwen-3.5",
        ("qwen3",),
        splits(QWEN35, trim_offsets=False),
        last=QWEN,
        normalizer=NFC,
        post_processor=byte_level(False, False, False),
    ),
    Published("nanochat", ("cl100k",), splits(NANOCHAT, trim_offsets=False), last=(Added(("<|bos|>",)),)),
    # -- o200k's
    Published(
        "gpt-oss",
        ("o200k",),
        splits(O200K),
        last=(
            Added(("<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>")),
            Added(("<|start|>", "<|end|>", "<|message|>", "<|call|>", "<|endofprompt|>")),
            Added(numbered("<|reserved_{}|>", 1000)),
        ),
        post_processor=byte_level(True, False),
    ),
    Published(
        "llama-4",
        ("o200k",),
        splits(O200K),
        last=(Added(("<|begin_of_text|>", "<|end_of_text|>", *numbered("<|reserved_{}|>", 1132))),),
        post_processor=Template(("<|begin_of_text|>",), with_byte_level=True),
    ),
    Published(
        "minimax-m2",
        ("o200k",),
        splits(O200K, trim_offsets=False),
        last=(
            Added(("]!p~[", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "]~b]", "]~!b[", "[e~[")),
            Added(("<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"), special=False),
        ),
        post_processor=byte_level(True, False),
    ),
    Published(
        "mistral-nemo",
        ("tekken", "o200k"),
        splits(TEKKEN),
        first=(Added(("<unk>", "<s>", "</s>", "[INST]", "[/INST]", *numbered("<SPECIAL_{}>", 1000)[5:])),),
        last=(),
        post_processor=Template(("<s>",), with_byte_level=True),
        ignore_merges=True,
    ),
    Published(
        "nemotron-3",
        ("tekken", "o200k"),
        splits(TEKKEN),
        first=(
            Added(("<unk>", "<s>", "</s>", *numbered("<SPECIAL_{}>", 1000)[3:10])),
            Added(("<|im_start|>", "<|im_end|>")),
            Added(("<think>", "</think>", "<tool_call>", "</tool_call>"), special=False),
            Added(numbered("<SPECIAL_{}>", 1000)[16:]),
        ),
        last=(),
        post_processor=Template(("<s>",), with_byte_level=True),
    ),
    Published(
        "kimi-k2",
        ("deepseek_v3", "o200k"),
        splits(KIMI),
        last=(
            Added(("[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>")),
            Added(("<|im_middle|>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")),
        ),
        ignore_merges=True,
    ),
    Published(
        "deepseek-v4",  # tokens that overlap and differ in `normalized`
        ("deepseek_v3", "o200k"),
        splits(*DEEPSEEK_V3),
        last=(
            Added(numbered("<｜place▁holder▁no▁{}｜>", 800)),
            Added(("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"), special=False, normalized=True),
            Added(("｜DSML｜", "｜DSML"), special=False, normalized=True),
            Added(("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "<｜DSML｜"), special=False),
            Added(("<|EOT|>",)),
        ),
        normalizer={"type": "Sequence", "normalizers": []},
        post_processor=byte_level(True, False),
    ),
    # -- expressions of their own
    Published(
        "bloom",
        ("o200k", "gpt2"),
        splits(BLOOM),
        first=(Added(("<unk>", "<s>", "</s>", "<pad>")),),
        last=(),
        post_processor=byte_level(True, False, False),
    ),
    Published(
        "exaone-4",
        ("o200k", "gpt2"),
        splits(EXAONE_4),
        first=(Added(("[PAD]", "[BOS]", "[EOS]", "[UNK]", *numbered("[unused{}]", 200))),),
        normalizer=NFC,
    ),
    Published(
        "cohere-aya",
        ("o200k", "gpt2"),
        splits(AYA_DIGITS, O200K),
        first=(Added(tuple(COHERE_TOKENS)),),
        normalizer=NFC,
        post_processor=Template(("<BOS_TOKEN>",)),
    ),
)
