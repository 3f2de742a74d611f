"""The little that the lab's own scripts need of OpenStack's HTTP APIs. Runs in the chroot; standard library only."""
import json
import os
import urllib.error
import urllib.request

ADDRESS = os.environ['LAB_ADDR']
CINDER = 'http://%s:8776/v3' % ADDRESS
KEYSTONE = 'http://%s:5000/v3' % ADDRESS
STATE = '/lab/state'


class HTTPError(Exception):
    def __init__(self, status, body):
        super().__init__('HTTP %d: %s' % (status, body))
        self.status = status


def request(method, url, body=None, token=None):
    """One request: the answer's headers and its JSON."""
    headers = {'Accept': 'application/json', 'Content-Type': 'application/json'}
    if token:
        headers['X-Auth-Token'] = token
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
            raw = answer.read()
            return answer.headers, json.loads(raw) if raw else None
    except urllib.error.HTTPError as error:
        raise HTTPError(error.code, error.read().decode(errors='replace')) from error


def secret(name):
    with open('%s/secrets/%s' % (STATE, name), encoding='ascii') as file:
        return file.read().strip()


def private_file(path):
    """A new or emptied file that only root may read."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='ascii')


def keystone_token(user, project):
    """A token for a user whose password is one of the lab's secrets, and the project's id."""
    domain = {'id': 'default'}
    headers, answer = request('POST', KEYSTONE + '/auth/tokens', {'auth': {
        'identity': {'methods': ['password'],
                     'password': {'user': {'name': user, 'domain': domain, 'password': secret(user)}}},
        'scope': {'project': {'name': project, 'domain': domain}},
    }})
    return headers['X-Subject-Token'], answer['token']['project']['id']


class Cinder:
    """Cinder as its administrator sees it, in either mode."""

    def __init__(self):
        if os.environ['MODE'] == 'keystone':
            self.token, project = keystone_token('admin', 'admin')
            self.url = '%s/%s' % (CINDER, project)
        else:
            # The project of noauth is whatever the token says. One that is not hexadecimal is refused in a URL
            # (project_id_regex), so it is left out there. Before Yoga (20) each URL has one, and it may be any.
            self.token, self.url = 'admin:admin', CINDER + ('/admin' if int(os.environ['CINDER']) < 20 else '')

    def __call__(self, method, path, body=None):
        return request(method, self.url + path, body, self.token)[1]
