"""Prints the volumes of all projects: id, status, size, name, metadata; tab-separated, oldest first."""
import json
import signal
import sys

import lab_api


def volumes(cinder):
    path = '/volumes/detail?all_tenants=1&sort=created_at:asc&limit=500'
    marker = ''
    while True:
        page = cinder('GET', path + marker)['volumes']
        yield from page
        if len(page) < 500:
            return
        marker = '&marker=' + page[-1]['id']


def main():
    for volume in volumes(lab_api.Cinder()):
        print(volume['id'], volume['status'], volume['size'], volume['name'] or '',
              json.dumps(volume['metadata'], sort_keys=True), sep='\t')


if __name__ == '__main__':
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `list.sh | head` is no failure
    try:
        main()
    except (OSError, lab_api.HTTPError) as error:
        sys.exit('Cinder does not answer: %s' % error)
