"""The state of an ensemble by its servers, disks and logs: what can be lost, why, and what is safe to do now."""
