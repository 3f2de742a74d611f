"""After a start of Cinder: waits for its pools, raises the quota, makes a volume type for each backend, and
"iscsi", which the older provisioner's example names.

What is there already is left as it is, so that it serves a restart too.
"""
import os
import sys
import time

import lab_api

BACKENDS = os.environ['BACKENDS'].split(',')
QUOTA = {'volumes': 1000, 'snapshots': 1000, 'gigabytes': 1000000, 'backups': 1000, 'backup_gigabytes': 1000000,
         'groups': 1000, 'per_volume_gigabytes': -1}


def first_answer(deadline):
    """The API listens before it answers."""
    while True:
        try:
            cinder = lab_api.Cinder()
            cinder('GET', '/types')
            return cinder
        except (OSError, lab_api.HTTPError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def wait_for_pools(cinder, deadline):
    """A volume that is created before the scheduler knows its backend ends in "error"."""
    missing = set(BACKENDS)
    while missing:
        pools = cinder('GET', '/scheduler-stats/get_pools')['pools']
        missing = set(BACKENDS) - {pool['name'].split('@')[1].split('#')[0] for pool in pools}
        if missing and time.monotonic() > deadline:
            sys.exit('backends without a pool: ' + ', '.join(sorted(missing)))
        time.sleep(0.1 if missing else 0)


def raise_quota(cinder):
    """The class "default" holds for every project without a quota of its own; the database ships 10 volumes."""
    cinder('PUT', '/os-quota-class-sets/default', {'quota_class_set': QUOTA})


def make_types(cinder):
    have = {volume_type['name'] for volume_type in cinder('GET', '/types')['volume_types']}
    types = {backend: backend for backend in BACKENDS}
    if 'lvm' in BACKENDS:
        types['iscsi'] = 'lvm'
    for name, backend in types.items():
        if name not in have:
            cinder('POST', '/types', {'volume_type': {
                'name': name, 'extra_specs': {'volume_backend_name': backend}}})


def main():
    deadline = time.monotonic() + 120
    cinder = first_answer(deadline)
    raise_quota(cinder)
    make_types(cinder)
    wait_for_pools(cinder, deadline)


if __name__ == '__main__':
    main()
