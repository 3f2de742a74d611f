package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/capacity"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// published returns a client of a cluster with what two dispatchers have published, and a CSI driver.
func published() *fake.Clientset {
	objects := []runtime.Object{
		capacity.Driver(contract.ProvisionerName), capacity.Driver("example.com"),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "rbd.csi.ceph.com"}},
		&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "csisc-1", Namespace: "ceph"}},
	}
	for class, provisioner := range map[string]string{"gold": contract.ProvisionerName, "theirs": "example.com"} {
		for _, obj := range capacity.Wanted(capacity.Class{Name: class, Provisioner: provisioner, Namespace: "flex-provisioner"}, nil, metav1.Now().Time) {
			objects = append(objects, obj)
		}
	}
	return fake.NewClientset(objects...)
}

// While the CSIDriver exists, the scheduler places no pod of a class without objects.
func TestUninstallDeletesTheCSIDriverBeforeTheCapacity(t *testing.T) {
	client := published()
	held, err := admin.Survey(t.Context(), client, contract.ProvisionerName)
	if err != nil || held.IsEmpty() {
		t.Fatalf("%+v, %v", held, err)
	}
	var said strings.Builder
	if err := held.Print(&said); err != nil || !strings.Contains(said.String(), "1 CSIDriver and 1 CSIStorageCapacities of the dispatcher are deleted") {
		t.Errorf("it says %q, %v", said.String(), err)
	}
	if err := held.Release(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, a := range client.Actions() {
		if d, deletes := a.(clienttesting.DeleteAction); deletes {
			deleted = append(deleted, a.GetResource().Resource+" "+d.GetName()[:5])
		}
	}
	if want := []string{"csidrivers flex-", "csistoragecapacities flex-"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
	if left, err := admin.Survey(t.Context(), client, contract.ProvisionerName); err != nil || !left.IsEmpty() {
		t.Errorf("left: %+v, %v", left, err)
	}
	if theirs, err := admin.Survey(t.Context(), client, "example.com"); err != nil || theirs.Published.Driver == nil || len(theirs.Published.Capacities) != 1 {
		t.Errorf("what another dispatcher has published: %+v, %v", theirs.Published, err)
	}
}

func TestUninstallKeepsTheCapacityOfADriverThatStays(t *testing.T) {
	client := published()
	client.PrependReactor("delete", "csidrivers", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("a webhook says no")
	})
	held, err := admin.Survey(t.Context(), client, contract.ProvisionerName)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Release(t.Context(), client); err == nil || !strings.Contains(err.Error(), "a webhook says no") {
		t.Errorf("the error is %v", err)
	}
	list, err := client.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{LabelSelector: config.SelectManaged})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%d CSIStorageCapacities are left, %v", len(list.Items), err)
	}
}
