package fakecluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RequestSize sets what the claim data requests.
func (c *Cluster) RequestSize(size string) {
	Update(c, User, c.Claim("data"), func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// HasSize returns a condition: the claim data has a size, and its status says nothing of an expansion any more.
func (c *Cluster) HasSize(size string) func() bool {
	return func() bool {
		s := c.Claim("data").Status
		return s.Capacity.Storage().String() == size && len(s.Conditions) == 0 && len(s.AllocatedResourceStatuses) == 0
	}
}

// ShowsResize returns a condition: the status of the claim data says how far its expansion has come, with one condition.
func (c *Cluster) ShowsResize(status corev1.ClaimResourceStatus, condition corev1.PersistentVolumeClaimConditionType) func() bool {
	return func() bool {
		s := c.Claim("data").Status
		return s.AllocatedResourceStatuses[corev1.ResourceStorage] == status && len(s.Conditions) == 1 && s.Conditions[0].Type == condition
	}
}
