package volume

// Access is how a volume is made reachable: at first what the class asks for, and once the volume is exported what
// takes the export back. It is recorded on the PV.
type Access struct {
	// Method is how the backend exports the volume.
	Method Method
	// ID is the backend's name of the export, where the method gives it one.
	ID string
	// Client is who may reach the volume.
	Client Client
	// Recorded is set to look up an export that an earlier run recorded, and to make none.
	Recorded bool
}

// Method is one of a backend's ways to export a volume, by the backend's own name.
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
}
