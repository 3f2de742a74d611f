"""Keystone for uwsgi. Not every release comes with a file of its own for that."""
from keystone.server import wsgi

application = wsgi.initialize_public_application()
