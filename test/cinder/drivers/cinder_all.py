"""cinder-api, cinder-scheduler and cinder-volume in one process over oslo.messaging's in-memory transport (fake:/).

Usage: python3 cinder_all.py --config-file FILE

Everything is Cinder's own code. What is here makes three services at home in one process, which the in-memory
transport needs: no broker to install, to start and to wait for.
"""
# The order of these lines is that of cinder/cmd/*.py: everything that is imported later must see eventlet's threads.
import eventlet
import eventlet.tpool  # noqa: F401
try:  # Cinder 29 does it itself, and goes by whether it did
    from cinder import monkey_patch
    monkey_patch.patch()
except ImportError:
    eventlet.monkey_patch()
    import __original_module_threading as orig_threading
    import threading
    orig_threading.current_thread.__globals__['_active'] = threading._active

import logging as python_logging  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402

from cinder import i18n  # noqa: E402
i18n.enable_lazy()

import os_brick  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log as logging  # noqa: E402
from oslo_messaging._drivers import impl_fake  # noqa: E402
from oslo_serialization import jsonutils  # noqa: E402
from oslo_service import service as oslo_service  # noqa: E402

from cinder import coordination, objects, rpc, service, utils, version  # noqa: E402
from cinder.cmd import volume as cmd_volume  # noqa: E402
from cinder.common import config, constants  # noqa: E402

CONF = cfg.CONF


def through_json(value):
    """What a broker would have made of a message."""
    return value if value is None else jsonutils.loads(jsonutils.dumps(value))


def make_transport_honest():
    """The in-memory transport hands objects over as they are; get_pools, for one, fails on a ReadOnlyDict.

    The context is an object, too, where Cinder 28 asks itself before a heartbeat whether it works.
    """
    reply, send = impl_fake.FakeIncomingMessage.reply, impl_fake.FakeDriver._send

    def json_reply(self, value=None, failure=None):
        return reply(self, through_json(value), failure)

    def json_send(self, target, ctxt, message, *args, **kwargs):
        ctxt = ctxt if isinstance(ctxt, dict) else ctxt.to_dict()
        return send(self, target, ctxt, through_json(message), *args, **kwargs)

    impl_fake.FakeIncomingMessage.reply = json_reply
    impl_fake.FakeDriver._send = json_send


def make_heartbeats_own():
    """Service.service_id is an attribute of the class, as there is one service a process.

    Without this all services would report the row of the last one, and cinder-volume be "down" after
    service_down_time: every later create ends in "error". One service reports at a time: in a report Cinder 28 waits for an
    answer, and what the class says must be the same afterwards.
    """
    report, reporting = service.Service.report_state, threading.Lock()

    def report_own_state(self):
        with reporting:
            service.Service.service_id = self.origin_service_id
            return report(self)

    service.Service.report_state = report_own_state


def configure(argv):
    objects.register_all()
    CONF(argv, project='cinder', version=version.version_string())
    config.set_middleware_defaults()
    logging.setup(CONF, 'cinder')
    python_logging.captureWarnings(True)
    utils.monkey_patch()
    if hasattr(os_brick, 'setup'):  # that of Cinder 17 has none
        os_brick.setup(CONF)
    coordination.COORDINATOR.start()
    rpc.init(CONF)


def volume_service(backend):
    CONF.register_opt(cmd_volume.host_opt, group=backend)
    host = getattr(CONF, backend).backend_host or CONF.host
    return service.Service.create(host='%s@%s' % (host, backend), service_name=backend,
                                  binary=constants.VOLUME_BINARY, coordination=False)


def main():
    make_transport_honest()
    make_heartbeats_own()
    configure(sys.argv[1:])
    launcher = oslo_service.ServiceLauncher(CONF)
    for backend in CONF.enabled_backends:
        launcher.launch_service(volume_service(backend))
    launcher.launch_service(service.Service.create(binary='cinder-scheduler'))
    launcher.launch_service(service.WSGIService('osapi_volume'))
    launcher.wait()


if __name__ == '__main__':
    main()
