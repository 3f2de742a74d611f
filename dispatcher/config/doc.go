// Package config parses a provisioner ConfigMap together with the parameters of its StorageClass,
// and names the revision under which both are stored. It is pure: the same source always gives the
// same Config or the same faults, all of them at once. It does not check what a config needs of the
// cluster. Start reading at Parse.
package config
