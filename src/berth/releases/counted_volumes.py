"""How many volumes a node takes, by release: under the names of the time, with the limits of the time."""

from berth.plugins.volume_limits import (
    AZURE_DATA_DISK,
    BETA_INSTANCE_TYPE,
    CINDER_DISK,
    EBS_DISK,
    GCE_DISK,
    INSTANCE_TYPE,
    CSICounter,
    CSIVolumeLimits,
    Disk,
    DiskCounter,
    MaxVolumeCount,
    Migration,
)
from berth.releases.release import FilterFactory, Options

EBS_LIMIT, EBS_NITRO_LIMIT, GCE_LIMIT, AZURE_LIMIT, CINDER_LIMIT = 39, 25, 16, 16, 256


def volume_counts_1_10() -> dict[str, FilterFactory]:
    """Return 1.10's, which are 1.7's as well: no node says anything else."""
    limits = {
        "MaxEBSVolumeCount": (EBS_DISK, EBS_LIMIT),
        "MaxGCEPDVolumeCount": (GCE_DISK, GCE_LIMIT),
        "MaxAzureDiskVolumeCount": (AZURE_DATA_DISK, AZURE_LIMIT),
    }

    def factory(name: str) -> FilterFactory:
        disk, limit = limits[name]
        return lambda options: MaxVolumeCount(
            DiskCounter(disk), options.max_pd_volumes or limit, reads_allocatable=False
        )

    return {name: factory(name) for name in limits}


def volume_counts_1_13() -> dict[str, FilterFactory]:
    """Return 1.13's."""

    def gated(options: Options) -> bool:
        return options.feature_gates.get("AttachVolumeLimit", True)

    return {
        "MaxEBSVolumeCount": lambda options: MaxVolumeCount(
            DiskCounter(EBS_DISK),
            options.max_pd_volumes or EBS_LIMIT,
            nitro_limit=options.max_pd_volumes or EBS_NITRO_LIMIT,
            reads_allocatable=gated(options),
        ),
        "MaxGCEPDVolumeCount": lambda options: MaxVolumeCount(
            DiskCounter(GCE_DISK), options.max_pd_volumes or GCE_LIMIT, reads_allocatable=gated(options)
        ),
        "MaxCSIVolumeCountPred": lambda options: CSIVolumeLimits(
            CSICounter(by_handle=True), reads_allocatable=gated(options)
        ),
        "MaxAzureDiskVolumeCount": lambda options: MaxVolumeCount(
            DiskCounter(AZURE_DATA_DISK),
            options.max_pd_volumes or AZURE_LIMIT,
            reads_allocatable=gated(options),
        ),
    }


def volume_counts_1_17() -> dict[str, FilterFactory]:
    """Return 1.17's."""

    def counter(disk: Disk, options: Options) -> DiskCounter:
        return DiskCounter(disk, by_provisioner=True, migration=Migration.of_1_17(options.feature_gates))

    return {
        "MaxEBSVolumeCount": lambda options: MaxVolumeCount(
            counter(EBS_DISK, options),
            options.max_pd_volumes or EBS_LIMIT,
            nitro_limit=options.max_pd_volumes or EBS_NITRO_LIMIT,
            instance_labels=(BETA_INSTANCE_TYPE, INSTANCE_TYPE),
        ),
        "MaxGCEPDVolumeCount": lambda options: MaxVolumeCount(
            counter(GCE_DISK, options), options.max_pd_volumes or GCE_LIMIT
        ),
        "MaxCSIVolumeCountPred": lambda options: CSIVolumeLimits(
            CSICounter(migration=Migration.of_1_17(options.feature_gates)), reads_csi_nodes=True
        ),
        "MaxAzureDiskVolumeCount": lambda options: MaxVolumeCount(
            counter(AZURE_DATA_DISK, options), options.max_pd_volumes or AZURE_LIMIT
        ),
        "MaxCinderVolumeCount": lambda options: MaxVolumeCount(
            counter(CINDER_DISK, options), options.max_pd_volumes or CINDER_LIMIT
        ),
    }


def volume_limits_1_36() -> CSIVolumeLimits:
    """Return NodeVolumeLimits of 1.36."""
    counter = CSICounter(by_driver=True, migration=Migration.of_1_36(), reads_attachments=True)
    return CSIVolumeLimits(counter, reads_allocatable=False, reads_csi_nodes=True)
