// Package recipes tests the recipes for local volumes, on real file systems and real loop devices,
// without a cluster: the scripts run as they are shipped, in the container of their image, with an
// API server that is played. It needs root, and takes minutes: go test -tags recipes ./test/recipes
// (PART=recipes make e2e-long). Start at node_test.go.
package recipes
