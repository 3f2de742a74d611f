package volume

import "slices"

// WithPorts returns the client with the Fibre Channel ports of another one beside its own. The name
// of a port's node is at the port's place in its list: some drivers pair them
// (cinder/volume/drivers/dell_emc/unity/utils.py, extract_fc_uids).
func (c Client) WithPorts(other Client) Client {
	c.WWPNs, c.WWNNs = slices.Clone(c.WWPNs), slices.Clone(c.WWNNs)
	for i, port := range other.WWPNs {
		if slices.Contains(c.WWPNs, port) {
			continue
		}
		c.WWPNs = append(c.WWPNs, port)
		if i < len(other.WWNNs) {
			c.WWNNs = append(c.WWNNs, other.WWNNs[i])
		}
	}
	return c
}
