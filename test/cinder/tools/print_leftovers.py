"""Prints what is in Cinder, one line each: volumes and snapshots of all projects, and what the quotas count as taken.

Nothing at all when there is nothing.
"""
import os
import sys

import lab_api


def projects(cinder):
    """Ids by which Cinder keeps its books. Without keystone there is the one that all of the lab's clients name."""
    if os.environ['MODE'] != 'keystone':
        return {'admin': 'admin'}
    found = lab_api.request('GET', lab_api.KEYSTONE + '/projects', token=cinder.token)[1]['projects']
    return {project['id']: project['name'] for project in found}


def books(cinder, project, name):
    taken = cinder('GET', '/os-quota-sets/%s?usage=True' % project)['quota_set']
    for resource, count in sorted(taken.items()):
        if resource != 'id' and (count['in_use'] or count['reserved']):
            yield 'books: project %s, %s: %d in use, %d reserved' % (name, resource, count['in_use'], count['reserved'])


def main():
    cinder = lab_api.Cinder()
    for kind in ('volume', 'snapshot'):
        for found in cinder('GET', '/%ss/detail?all_tenants=1&limit=1000' % kind)[kind + 's']:
            print('%s: %s %s %s' % (kind, found['id'], found['status'], found['name']))
    for project, name in projects(cinder).items():
        for line in books(cinder, project, name):
            print(line)


if __name__ == '__main__':
    try:
        main()
    except (OSError, lab_api.HTTPError) as error:
        sys.exit('Cinder does not answer: %s' % error)
