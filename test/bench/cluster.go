package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Namespaces: of the claims and of everything of the benchmark's, and those of the shipped
// manifests.
const (
	benchNamespace  = "flex-bench"
	systemNamespace = "flex-system"
	configNamespace = "flex-provisioner"
)

// Users of the benchmark, so that the audit log keeps apart what a user, a node, a container and a
// provisioner ask for.
const (
	userNode      = "node"
	userContainer = "container"
)

// cluster is the API server, as its administrator.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface
	temp   string
}

func connect(kubeconfig, temp string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := clientOf(config)
	return &cluster{config, client, temp}, err
}

// clientOf returns a client without limits of its own.
func clientOf(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfig(config)
}

// eventually asks until there is no error. Then it is returned.
func eventually(ctx context.Context, timeout time.Duration, what string, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited %v for %s: %w (%w)", timeout, what, err, last)
	}
	return nil
}

// prepare makes the namespace, and lets its users do anything.
func (c *cluster) prepare(ctx context.Context) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: benchNamespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: benchNamespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + benchNamespace}},
	}, metav1.CreateOptions{})
	return err
}

// account makes a ServiceAccount if there is none.
func (c *cluster) account(ctx context.Context, namespace, name string, labels map[string]string) error {
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// kubeconfigOf returns the file with which a process is a ServiceAccount.
func (c *cluster) kubeconfigOf(ctx context.Context, namespace, name string) (string, error) {
	if err := c.account(ctx, namespace, name, nil); err != nil {
		return "", err
	}
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{
		Server: c.config.Host, CertificateAuthority: c.config.CAFile, CertificateAuthorityData: c.config.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: name}
	config.CurrentContext = "lab"
	file := filepath.Join(c.temp, name+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// as returns a client that is a user of the benchmark's.
func (c *cluster) as(ctx context.Context, user string) (kubernetes.Interface, error) {
	file, err := c.kubeconfigOf(ctx, benchNamespace, user)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	return clientOf(config)
}

const nodes = 4

func nodeName(i int) string { return fmt.Sprintf("bench-%d", i) }

// makeNodes makes nodes that the benchmark plays, and waits until pods may be scheduled there.
func (c *cluster) makeNodes(ctx context.Context) error {
	for i := range nodes {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, fakeNode(nodeName(i)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return eventually(ctx, time.Minute, "the nodes to be ready", func(ctx context.Context) error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			if len(node.Spec.Taints) > 0 {
				return fmt.Errorf("%s has the taint %s", node.Name, node.Spec.Taints[0].Key)
			}
		}
		return nil
	})
}

// fakeNode has room for every pod of a burst, and is where recipes run. Whoever asks it for the log
// of a pod is refused at once: nothing listens at its address.
func fakeNode(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("20k"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	now := metav1.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			"node-restriction.kubernetes.io/flex-storage-network": "true",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: name}},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
			}},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}
