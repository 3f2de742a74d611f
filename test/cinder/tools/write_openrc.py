"""Writes what a client needs to $LAB_STATE/cinder: openrc, openrc.admin and, with keystone, clouds.yaml.

Plain NAME=value lines: a shell reads them (set -a), and so does kubectl create secret --from-env-file.
"""
import json
import os

import lab_api

COMMON = {'OS_AUTH_URL': lab_api.KEYSTONE, 'OS_REGION_NAME': 'RegionOne', 'OS_IDENTITY_API_VERSION': '3'}


def write_env(name, values):
    with lab_api.private_file('%s/%s' % (lab_api.STATE, name)) as file:
        file.writelines('%s=%s\n' % item for item in values.items())


def password(user, project):
    return COMMON | {'OS_USERNAME': user, 'OS_PASSWORD': lab_api.secret(user), 'OS_PROJECT_NAME': project,
                     'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default'}


def noauth():
    values = {'OS_AUTH_TYPE': 'noauth', 'OS_CINDER_ENDPOINT': lab_api.CINDER, 'OS_USERNAME': 'admin',
              'OS_PROJECT_NAME': 'admin'}
    write_env('openrc', values)
    write_env('openrc.admin', values)


def keystone():
    with open(lab_api.STATE + '/secrets/application-credential', encoding='ascii') as file:
        credential = json.load(file)
    write_env('openrc', password('demo', 'demo'))
    write_env('openrc.admin', password('admin', 'admin'))
    write_env('openrc.application-credential', COMMON | {
        'OS_AUTH_TYPE': 'v3applicationcredential', 'OS_APPLICATION_CREDENTIAL_ID': credential['id'],
        'OS_APPLICATION_CREDENTIAL_SECRET': credential['secret']})
    where = {'region_name': 'RegionOne', 'identity_api_version': '3'}
    clouds = {
        'demo': where | {'auth': {
            'auth_url': lab_api.KEYSTONE, 'username': 'demo', 'password': lab_api.secret('demo'),
            'project_name': 'demo', 'user_domain_id': 'default', 'project_domain_id': 'default'}},
        'demo-application-credential': where | {'auth_type': 'v3applicationcredential', 'auth': {
            'auth_url': lab_api.KEYSTONE, 'application_credential_id': credential['id'],
            'application_credential_secret': credential['secret']}},
    }
    with lab_api.private_file(lab_api.STATE + '/clouds.yaml') as file:
        json.dump({'clouds': clouds}, file, indent=2)  # JSON is YAML


if __name__ == '__main__':
    {'noauth': noauth, 'keystone': keystone}[os.environ['MODE']]()
