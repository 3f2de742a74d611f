package volume

// Access is how a volume is made reachable. At first it is what the class asks for; of an exported volume it is what
// is needed to remove the export. It is recorded on the PV.
type Access struct {
	// Method is how the backend exports the volume.
	Method Method
	// ID is the backend's name of the export, where the method gives it one.
	ID string
	// Client is whom the volume is exported to.
	Client Client
	// Recorded is true if only an export that an earlier run recorded is to be returned, and none made.
	Recorded bool
}

// Method is one of a backend's ways to export a volume, by the backend's name for it.
type Method string

// Client is how the nodes present themselves to the storage. Its JSON is recorded on the PV.
type Client struct {
	Initiator string   `json:"initiator,omitempty"`
	Host      string   `json:"host,omitempty"`
	IP        string   `json:"ip,omitempty"`
	Platform  string   `json:"platform,omitempty"`
	OSType    string   `json:"os_type,omitempty"`
	Multipath bool     `json:"multipath"`
	WWPNs     []string `json:"wwpns,omitempty"`
	WWNNs     []string `json:"wwnns,omitempty"`
	NQN       string   `json:"nqn,omitempty"`
	HostID    string   `json:"nvme_hostid,omitempty"`
}
