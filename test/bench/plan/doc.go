// Package plan says what the benchmark measures: the settings of kube-controller-manager, the
// provisioners, and how many claims each of them gets. It is pure. Start at [Cells].
package plan
