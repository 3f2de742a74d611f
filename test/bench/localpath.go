package main

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// helperImage runs the scripts of local-path-provisioner, as root. Only nodes with a kubelet need
// it.
const helperImage = "localhost/bench-helper:v1"

// What local-path-provisioner reads, as its project ships it, but for the directory: that of the
// lab's nodes is their own.
const (
	localPathConfig = `{"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/var/lib/flex-volumes/local-path"]}]}`
	localPathPod    = `apiVersion: v1
kind: Pod
metadata: {name: helper-pod}
spec:
  containers:
    - {name: helper-pod, image: "` + helperImage + `", imagePullPolicy: IfNotPresent}
`
	localPathSetup    = "#!/bin/sh\nset -eu\nmkdir -m 0777 -p \"$VOL_DIR\"\n"
	localPathTeardown = "#!/bin/sh\nset -eu\nrm -rf \"$VOL_DIR\"\n"
)

// startLocalPath starts local-path-provisioner for nodes that are played.
func startLocalPath(ctx context.Context, s settings, c *cluster) (*subject, error) {
	return startLocalPathOn(ctx, s, c, nodeName(0))
}

// startLocalPathOn starts local-path-provisioner. It needs a node, which a scheduler would have
// selected for the claim's pod: the claims carry one when they are made.
func startLocalPathOn(ctx context.Context, s settings, c *cluster, node string) (*subject, error) {
	one := peer{
		user: "local-path", provisioner: localPathProvisioner, binding: storagev1.VolumeBindingWaitForFirstConsumer,
		annotations: map[string]string{annSelectedNode: node},
	}
	kubeconfig, err := one.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	config, pod, err := localPathFiles(ctx, s, c)
	if err != nil {
		return nil, err
	}
	args := []string{
		"start", "--kubeconfig", kubeconfig, "--namespace", benchNamespace, "--service-account-name", one.user, "--provisioner-name", localPathProvisioner,
		"--config", config, "--helper-pod-file", pod, "--helper-image", helperImage,
	}
	if s.cell.Row.Tuned { // from 0.0.37 on; hack/bench.sh leaves the row out where the flags are missing
		args = append(args, "--kube-client-qps", "2000", "--kube-client-burst", "4000", "--worker-threads", "200")
	}
	p, err := s.start(ctx, "local-path-provisioner", args...)
	if err != nil {
		return nil, err
	}
	return one.subject(c, p), nil
}

// localPathFiles writes what local-path-provisioner reads, and the ConfigMap of scripts that its
// pods mount.
func localPathFiles(ctx context.Context, s settings, c *cluster) (config, pod string, err error) {
	config, pod = filepath.Join(s.temp, "config.json"), filepath.Join(s.temp, "helperPod.yaml")
	for file, text := range map[string]string{config: localPathConfig, pod: localPathPod} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", "", err
		}
	}
	_, err = c.client.CoreV1().ConfigMaps(benchNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "local-path-config"},
		Data:       map[string]string{"setup": localPathSetup, "teardown": localPathTeardown},
	}, metav1.CreateOptions{})
	return config, pod, err
}
