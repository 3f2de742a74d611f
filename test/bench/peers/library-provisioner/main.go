// library-provisioner is the sig-storage library with volumes that exist at once, and nowhere: what
// a provisioner costs that is written with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "library-provisioner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	name := flag.String("name", "", "the provisioner that StorageClasses name")
	qps := flag.Float64("qps", float64(rest.DefaultQPS), "requests a second to the API server")
	burst := flag.Int("burst", rest.DefaultBurst, "requests to the API server in a burst")
	threads := flag.Int("threads", controller.DefaultThreadiness, "claims that are served at a time")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = float32(*qps), *burst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	controller.NewProvisionController(ctx, client, *name, instant{},
		controller.LeaderElection(false), controller.Threadiness(*threads)).Run(ctx)
	return nil
}

// instant has a volume for every claim.
type instant struct{}

func (instant) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      o.PVC.Spec.Resources.Requests,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: "10.250.0.9", Path: "/" + o.PVName},
			},
		},
	}, controller.ProvisioningFinished, nil
}

func (instant) Delete(context.Context, *corev1.PersistentVolume) error { return nil }
