"""Convert: Hugging Face folders in and out. Only their files are read and written; their library is not needed."""

from unmask.convert.hf_in import Report, import_hf
from unmask.convert.hf_out import Exported, export_hf

__all__ = ["Exported", "Report", "export_hf", "import_hf"]
