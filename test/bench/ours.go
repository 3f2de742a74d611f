package main

import (
	"cmp"
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// writer is the ServiceAccount of the config.
const writer = "bench-writer"

// startOurs starts our dispatcher with the permissions that are shipped.
func startOurs(ctx context.Context, s settings, c *cluster) (*subject, error) {
	row := s.cell.Row
	if row.Class == "" {
		if err := c.serveClass(ctx, row); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := c.kubeconfigOf(ctx, systemNamespace, report.OurActor)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx, program(row), ourFlags(row, kubeconfig)...)
	if err != nil {
		return nil, err
	}
	create := c.claims(cmp.Or(row.Class, className), nil)
	return &subject{create: create, remove: c.deleteClaim, programs: []*process.Program{p}}, nil
}

// program is the name of a row's dispatcher.
func program(row plan.Row) string {
	if row.Base {
		return "flex-dispatcher-base"
	}
	return "flex-dispatcher"
}

// serveClass makes a class with the settings of a row.
func (c *cluster) serveClass(ctx context.Context, row plan.Row) error {
	if err := c.makeClass(ctx, contract.ProvisionerName, storagev1.VolumeBindingImmediate); err != nil {
		return err
	}
	if err := c.account(ctx, configNamespace, writer, map[string]string{contract.LabelProvisioner: "true"}); err != nil {
		return err
	}
	_, err := c.client.CoreV1().ConfigMaps(configNamespace).Create(ctx, configOf(row), metav1.CreateOptions{})
	return err
}

func configOf(row plan.Row) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: className, Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: className,
		}},
		Data: map[string]string{
			"image": "localhost/bench:v1", "verbs": "provision,delete", "service-account-name": writer,
			"batch-size": strconv.Itoa(row.Batch), "max-parallel": strconv.Itoa(row.MaxParallel),
		},
	}
}

// ourFlags returns the dispatcher's flags: for a tuned row, with limits that do not bind.
func ourFlags(row plan.Row, kubeconfig string) []string {
	out := []string{"--kubeconfig=" + kubeconfig, "--listen=127.0.0.1:0"}
	if row.Class != "" {
		out = append(out, "--script-image="+scriptImage)
	}
	if row.Tuned {
		out = append(out, "--kube-api-qps=2000", "--kube-api-burst=4000", "--workers=20")
	}
	return out
}
