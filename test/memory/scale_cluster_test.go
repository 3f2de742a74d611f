package memory_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	configNamespace = "flex-provisioner"
	systemNamespace = "flex-system"
	className       = "gold"
	token           = "scale"
)

// apiServer is etcd and kube-apiserver, and nothing else of Kubernetes.
type apiServer struct {
	t                *testing.T
	dir, etcd        string
	kubeconfig       string
	client           kubernetes.Interface
	claims, servings int // so many are there, so many new claims were made
}

// background starts a process that ends with the test, or before by its signal.
func background(t *testing.T, dir, name, file string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(file, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// freeAddress returns one of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// await asks every moment until there is no error.
func await(t *testing.T, timeout time.Duration, what string, ask func() error) {
	t.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s: %v", timeout, what, err)
		}
	}
}

// startAPIServer starts the programs that are in a directory.
func startAPIServer(t *testing.T, bin string) *apiServer {
	t.Helper()
	s := &apiServer{t: t, dir: t.TempDir(), etcd: "http://" + freeAddress(t)}
	peer, address := "http://"+freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	background(t, s.dir, "etcd", filepath.Join(bin, "etcd"), "--name=scale", "--data-dir="+filepath.Join(s.dir, "etcd"), "--log-level=warn", "--unsafe-no-fsync",
		"--max-txn-ops=1000", "--quota-backend-bytes=8000000000", "--listen-client-urls="+s.etcd, "--advertise-client-urls="+s.etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=scale="+peer)
	s.write("sa.key", serviceAccountKey(t))
	s.write("tokens.csv", []byte(token+",admin,admin,system:masters\n"))
	background(t, s.dir, "kube-apiserver", filepath.Join(bin, "kube-apiserver"), "--etcd-servers="+s.etcd, "--cert-dir="+filepath.Join(s.dir, "pki"),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=AlwaysAllow", "--token-auth-file="+filepath.Join(s.dir, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+filepath.Join(s.dir, "sa.key"),
		"--service-account-key-file="+filepath.Join(s.dir, "sa.key"), "--disable-admission-plugins=StorageObjectInUseProtection", "--profiling=false")
	s.connect("https://" + address)
	s.prepare()
	return s
}

func (s *apiServer) write(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// serviceAccountKey returns a new private key.
func serviceAccountKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

// connect waits until the API server is ready.
func (s *apiServer) connect(host string) {
	s.t.Helper()
	config := &rest.Config{Host: host, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	var err error
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, 2*time.Minute, "the API server", func() error {
		return s.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(s.t.Context()).Error()
	})
	file := clientcmdapi.NewConfig()
	file.Clusters["scale"] = &clientcmdapi.Cluster{Server: host, InsecureSkipTLSVerify: true}
	file.AuthInfos["scale"] = &clientcmdapi.AuthInfo{Token: token}
	file.Contexts["scale"] = &clientcmdapi.Context{Cluster: "scale", AuthInfo: "scale"}
	file.CurrentContext = "scale"
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*file, s.kubeconfig); err != nil {
		s.t.Fatal(err)
	}
}

// prepare makes a class with its config.
func (s *apiServer) prepare() {
	s.t.Helper()
	ctx, none := s.t.Context(), metav1.CreateOptions{}
	for _, name := range []string{configNamespace, systemNamespace} {
		_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, none)
		s.must(err)
	}
	_, err := s.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: contract.ProvisionerName,
	}, none)
	s.must(err)
	_, err = s.client.CoreV1().ServiceAccounts(configNamespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "writer", Labels: map[string]string{contract.LabelProvisioner: "true"}},
	}, none)
	s.must(err)
	_, err = s.client.CoreV1().ConfigMaps(configNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: className, Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: className,
		}},
		Data: map[string]string{"image": "localhost/scale:v1", "verbs": "provision,delete", "service-account-name": "writer"},
	}, none)
	s.must(err)
}

func (s *apiServer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// grow adds bound claims with their PVs until there are so many as in a lot. They are written to etcd as the
// API server writes them, many at a time: by the API server it would take most of the time of the
// run.
func (s *apiServer) grow(l lot) {
	s.t.Helper()
	const inTransaction = 250
	var puts []any
	for ; s.claims < l.bound; s.claims++ {
		claim, volume := l.claim(s.claims), pv(s.claims)
		claim.ResourceVersion, volume.ResourceVersion = "", ""
		puts = append(puts,
			s.put("/registry/persistentvolumeclaims/"+claim.Namespace+"/"+claim.Name, claim), s.put("/registry/persistentvolumes/"+volume.Name, volume))
		if len(puts) >= inTransaction || s.claims == l.bound-1 {
			s.transact(puts)
			puts = nil
		}
	}
	s.awaitCaches(l)
}

// awaitCaches waits until the caches of the API server show the last claim and its PV.
func (s *apiServer) awaitCaches(l lot) {
	s.t.Helper()
	cached := metav1.GetOptions{ResourceVersion: "0"}
	last := l.claim(s.claims - 1)
	await(s.t, 5*time.Minute, "the API server to see the claims", func() error {
		_, err := s.client.CoreV1().PersistentVolumeClaims(last.Namespace).Get(s.t.Context(), last.Name, cached)
		return err
	})
	await(s.t, 5*time.Minute, "the API server to see the PVs", func() error {
		_, err := s.client.CoreV1().PersistentVolumes().Get(s.t.Context(), last.Spec.VolumeName, cached)
		return err
	})
}

// put returns a request of etcd that writes an object.
func (s *apiServer) put(key string, obj runtime.Object) any {
	s.t.Helper()
	var text bytes.Buffer
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			s.must(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(obj, &text))
		}
	}
	return map[string]any{"requestPut": map[string]string{
		"key": base64.StdEncoding.EncodeToString([]byte(key)), "value": base64.StdEncoding.EncodeToString(text.Bytes()),
	}}
}

func (s *apiServer) transact(requests []any) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"success": requests})
	s.must(err)
	answer, err := http.Post(s.etcd+"/v3/kv/txn", "application/json", bytes.NewReader(text))
	s.must(err)
	defer func() { _ = answer.Body.Close() }()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		s.t.Fatalf("etcd answers %d %s", answer.StatusCode, body)
	}
}

// newClaim makes a claim that waits for its volume.
func (s *apiServer) newClaim() types.UID {
	s.t.Helper()
	s.servings++
	claim, err := s.client.CoreV1().PersistentVolumeClaims("default").Create(s.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("new-", s.servings), Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": contract.ProvisionerName},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(className), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	return claim.UID
}

// awaitJob waits until a claim is served: its Job was created. It returns when it was seen.
func (s *apiServer) awaitJob(uid types.UID) time.Time {
	s.t.Helper()
	await(s.t, 2*time.Minute, "the Job of a new claim", func() error {
		_, err := s.client.BatchV1().Jobs(configNamespace).Get(s.t.Context(), "provision-"+string(uid)+"-1", metav1.GetOptions{})
		return err
	})
	return time.Now()
}

// removeNew removes the new claims and their Jobs, while no dispatcher runs.
func (s *apiServer) removeNew() {
	s.t.Helper()
	ctx := s.t.Context()
	jobs, err := s.client.BatchV1().Jobs(configNamespace).List(ctx, metav1.ListOptions{})
	s.must(err)
	for _, job := range jobs.Items {
		s.removeJob(ctx, &job)
	}
	s.must(s.client.CoreV1().PersistentVolumeClaims("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func (s *apiServer) removeJob(ctx context.Context, job *batchv1.Job) {
	s.t.Helper()
	_, err := s.client.BatchV1().Jobs(configNamespace).Patch(ctx, job.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	s.must(err)
	now := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	s.must(s.client.BatchV1().Jobs(configNamespace).Delete(ctx, job.Name, now))
}

var errNotReady = errors.New("it is not ready")
