"""make_volume.py NAME: a volume of 1 GiB of the first backend's type, as the administrator; prints its id once it is there.

make_volume.py --remove ID: and its end.
"""
import os
import sys
import time

import lab_api


def make(cinder, name):
    body = {'volume': {'size': 1, 'name': name, 'volume_type': os.environ['BACKENDS'].split(',')[0]}}
    volume = cinder('POST', '/volumes', body)['volume']['id']
    while cinder('GET', '/volumes/' + volume)['volume']['status'] == 'creating':
        time.sleep(0.1)
    print(volume)


def remove(cinder, volume):
    cinder('DELETE', '/volumes/' + volume)
    try:
        while cinder('GET', '/volumes/' + volume):
            time.sleep(0.1)
    except lab_api.HTTPError as error:
        if error.status != 404:
            raise


if __name__ == '__main__':
    if sys.argv[1] == '--remove':
        remove(lab_api.Cinder(), sys.argv[2])
    else:
        make(lab_api.Cinder(), sys.argv[1])
