"""Lost disks, old ones, and disks of another cluster.

hazards  the kinds of disks, the check of a request, and the safe ways
volumes  servers that restart with an empty disk because their volumes are lost with their pods
search   the search for a loss where servers start with such disks
"""
