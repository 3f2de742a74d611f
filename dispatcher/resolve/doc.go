// Package resolve finds the config that serves a claim. It finds how a pending claim would be
// provisioned now, from its class, the class's ConfigMap, the source of a clone and the selected
// node. And it finds under which stored revision a volume would be deleted. It reads through the
// caches, and writes nothing. Start reading at Resolver.Provision.
package resolve
