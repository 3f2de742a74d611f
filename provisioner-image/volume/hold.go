package volume

// API is how a volume is kept from everybody else and exported.
type API string

// The ways. The storage treats them as strangers: what was held by one is released by the same one.
const (
	// Auto is Attachments where the storage knows them, and Reserve where it does not.
	Auto API = "auto"
	// Attachments are records of the storage's own: it restores their exports after a restart, and to
	// delete one takes the export back.
	Attachments API = "attachments"
	// Reserve is the older way: reserve, then initialize_connection. Some storages keep the export until
	// the volume is deleted, and forget it when they are restarted.
	Reserve API = "reserve"
)

// Hold is how a volume is held for its claim. It is recorded on the PV.
type Hold struct {
	API API
	// Attachment is the ID of ours, once there is one.
	Attachment string
	// Connector is whom the volume is exported to.
	Connector Connector
}

// Connector is how the nodes present themselves to the storage, with the JSON names of the OpenStack
// connector.
type Connector struct {
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

// Attachment is one use of a volume.
type Attachment struct {
	ID     string
	Status string
	// Server is the machine that Nova attached the volume to. Ours are of none.
	Server string
	// Connection is empty until the volume was exported for it.
	Connection Connection
}

// Statuses of an attachment that decide what comes next.
const (
	attached       = "attached"
	errorAttaching = "error_attaching"
)
