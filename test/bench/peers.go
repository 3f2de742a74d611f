package main

import (
	"context"
	"path/filepath"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
)

// The names under which the peers serve classes.
const (
	csiDriver            = "csi.bench.example"
	libraryProvisioner   = "bench.example/library"
	localPathProvisioner = "rancher.io/local-path"
)

// peer is a program of another project that serves a class.
type peer struct {
	user        string
	provisioner string
	binding     storagev1.VolumeBindingMode
	annotations map[string]string
}

// prepare makes the peer's class and user, and returns its kubeconfig.
func (p peer) prepare(ctx context.Context, c *cluster) (string, error) {
	if err := c.makeClass(ctx, p.provisioner, p.binding); err != nil {
		return "", err
	}
	return c.kubeconfigOf(ctx, benchNamespace, p.user)
}

func (p peer) subject(c *cluster, programs ...*process.Program) *subject {
	return &subject{create: c.claims(className, p.annotations), remove: c.deleteClaim, programs: programs}
}

// startCSI starts the csi external-provisioner and a driver whose volumes are instant.
func startCSI(ctx context.Context, s settings, c *cluster) (*subject, error) {
	one := peer{user: "csi", provisioner: csiDriver, binding: storagev1.VolumeBindingImmediate}
	kubeconfig, err := one.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(s.temp, "csi.sock")
	driver, err := s.start(ctx, "csi-driver", "--socket="+socket, "--name="+csiDriver)
	if err != nil {
		return nil, err
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--csi-address=" + socket}
	if s.cell.Row.Tuned {
		args = append(args, "--kube-api-qps=2000", "--kube-api-burst=4000", "--worker-threads=200")
	}
	provisioner, err := s.start(ctx, "csi-provisioner", args...)
	if err != nil {
		return nil, err
	}
	return one.subject(c, provisioner, driver), nil
}

// startLibrary starts a provisioner that consists of the sig-storage library and of volumes that
// are instant.
func startLibrary(ctx context.Context, s settings, c *cluster) (*subject, error) {
	one := peer{user: "library", provisioner: libraryProvisioner, binding: storagev1.VolumeBindingImmediate}
	kubeconfig, err := one.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--name=" + libraryProvisioner}
	if s.cell.Row.Tuned {
		args = append(args, "--qps=2000", "--burst=4000", "--threads=100")
	}
	p, err := s.start(ctx, "library-provisioner", args...)
	if err != nil {
		return nil, err
	}
	return one.subject(c, p), nil
}
