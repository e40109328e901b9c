"""A diagnosis of an ensemble by its servers, disks and logs: possible losses, causes and safe next steps."""
