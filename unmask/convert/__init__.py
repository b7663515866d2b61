"""Import and export Hugging Face folders. Only their files are read and written; the transformers library is not needed.

Each Hugging Face model family is one file that holds a `FAMILY` (see family.py). The other files are shared by all families.
"""

from unmask.convert.architecture import Architecture, architecture_of
from unmask.convert.hf_in import Report, import_hf
from unmask.convert.hf_out import Exported, export_hf
from unmask.convert.peft_out import export_peft
from unmask.convert.sentence_transformers_out import export_sentence_transformers
from unmask.convert.vectors_in import VectorReport, import_vectors

__all__ = [
    "Architecture",
    "Exported",
    "Report",
    "VectorReport",
    "architecture_of",
    "export_hf",
    "export_peft",
    "export_sentence_transformers",
    "import_hf",
    "import_vectors",
]
