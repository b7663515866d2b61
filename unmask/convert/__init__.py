"""Convert: Hugging Face folders in and out. Only their files are read and written; their library is not needed.

Each family of Hugging Face is one file that holds a `FAMILY` (see family.py); the other files hold what all share.
"""

from unmask.convert.architecture import Architecture, architecture_of
from unmask.convert.hf_in import Report, import_hf
from unmask.convert.hf_out import Exported, export_hf

__all__ = ["Architecture", "Exported", "Report", "architecture_of", "export_hf", "import_hf"]
