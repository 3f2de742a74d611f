"""After a start of keystone: the accounts, the catalog entry of Cinder, and an application credential.

Projects demo and other, user demo (a member of both, and no more: docs/cinder.md says that the login needs no other role),
user cinder for Cinder itself. What is there is left as it is, so that it serves a restart too.
"""
import json
import os

import lab_api

CREDENTIAL = lab_api.STATE + '/secrets/application-credential'


class Keystone:
    def __init__(self):
        self.token, self.project = lab_api.keystone_token('admin', 'admin')

    def __call__(self, method, path, body=None):
        return lab_api.request(method, lab_api.KEYSTONE + path, body, self.token)[1]

    def ensure(self, kind, name, **fields):
        """The id of the one of that name, made if there is none."""
        for found in self('GET', '/%ss?name=%s' % (kind, name))['%ss' % kind]:
            return found['id']
        return self('POST', '/%ss' % kind, {kind: {'name': name, **fields}})[kind]['id']


def make_accounts(keystone):
    roles = {role: keystone.ensure('role', role) for role in ('admin', 'member', 'reader', 'service')}
    projects = {name: keystone.ensure('project', name, domain_id='default') for name in ('service', 'demo', 'other')}
    users = {user: keystone.ensure('user', user, domain_id='default', password=lab_api.secret(secret))
             for user, secret in (('cinder', 'service'), ('demo', 'demo'))}
    for project, user, granted in (('service', 'cinder', ('admin', 'service')),
                                   ('demo', 'demo', ('member',)),
                                   ('other', 'demo', ('member',))):
        for role in granted:
            keystone('PUT', '/projects/%s/users/%s/roles/%s' % (projects[project], users[user], roles[role]))
    return users


def make_catalog(keystone):
    """Clients of the cloud provider need a compute service in the catalog when they start. Nothing listens there."""
    make_entry(keystone, 'cinderv3', 'volumev3', lab_api.CINDER + '/%(project_id)s')
    make_entry(keystone, 'nova', 'compute', 'http://%s:8774/v2.1' % lab_api.ADDRESS)


def make_entry(keystone, name, kind, url):
    service = keystone.ensure('service', name, type=kind)
    have = {endpoint['interface'] for endpoint in keystone('GET', '/endpoints?service_id=' + service)['endpoints']}
    for interface in {'public', 'internal', 'admin'} - have:
        keystone('POST', '/endpoints', {'endpoint': {
            'service_id': service, 'interface': interface, 'region_id': 'RegionOne',
            'url': url}})


def make_application_credential(user):
    """Its secret is shown once, so what is kept is the file, written whole or not at all."""
    if os.path.exists(CREDENTIAL):
        return
    token, _ = lab_api.keystone_token('demo', 'demo')
    path = '%s/users/%s/application_credentials' % (lab_api.KEYSTONE, user)
    for old in lab_api.request('GET', path, token=token)[1]['application_credentials']:
        lab_api.request('DELETE', '%s/%s' % (path, old['id']), token=token)
    made = lab_api.request('POST', path, {'application_credential': {'name': 'lab'}}, token)[1]
    credential = {key: made['application_credential'][key] for key in ('id', 'secret')}
    with lab_api.private_file(CREDENTIAL + '.new') as file:
        json.dump(credential, file)
    os.rename(CREDENTIAL + '.new', CREDENTIAL)


def main():
    keystone = Keystone()
    users = make_accounts(keystone)
    make_catalog(keystone)
    make_application_credential(users['demo'])


if __name__ == '__main__':
    main()
