"""Writers of schedules for other programs: engine flags, TensorRT builders, tables, traces."""

from onchip.multi_dnn.export.schedules import SCHEDULE_FORMATS, export_schedule

__all__ = ["SCHEDULE_FORMATS", "export_schedule"]
