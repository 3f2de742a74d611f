package mapper

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a storage says of a connection becomes a part of paths, and of the arguments of programs
// that run as root on the nodes. Kubernetes checks little of it: of a portal only that there is
// one, and in an IQN it allows "/" (validateISCSIVolumeSource in pkg/apis/core/validation), while
// the kubelet joins both to a path (makePDNameInternal in pkg/volume/iscsi), and csi-driver-nvmf
// joins its attributes by commas. So every text of a connection has a type of this file, which
// reads it only if it has that form. An empty text and null have every form: backends send them for
// what a volume does not have.

// The kinds of text in a connection.
type (
	// portal is where an iSCSI target answers: HOST:PORT, or HOST with iSCSI's own port.
	portal string
	// host is an address, without brackets, or a DNS name.
	host string
	// port is a number from 1 to 65535, which some backends send as a number.
	port string
	// scsiName names a target.
	scsiName string
	// wwn is a port's name as the kubelet spells it, wwid that of a disk.
	wwn  string
	wwid string
	// nqn names an NVMe subsystem.
	nqn string
	// deviceID identifies an NVMe device: a UUID, an NGUID or an EUI.
	deviceID string
	// imagePath is POOL/IMAGE of Ceph, and cephName one of its names.
	imagePath string
	cephName  string
	// word is one of a few words, and compared with them.
	word string
	// login is a user name or a password. It is never shown.
	login string
)

// Forms that are a pattern. None begins with a dash, which a program would take for an option.
var (
	hostName     = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?(\.[0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?)*$`)
	scsiNameForm = regexp.MustCompile(`^(?i:iqn|eui|naa)\.[0-9A-Za-z.:_-]+$`)
	wwnForm      = regexp.MustCompile(`^[0-9a-f]{16}$`)
	wwidForm     = regexp.MustCompile(`^[23][0-9a-f]{16}([0-9a-f]{16})?$`)
	nqnForm      = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.:_-]*$`)
	deviceForm   = regexp.MustCompile(`^[[:xdigit:]]{8}[[:xdigit:]-]{8,32}$`)
	cephForm     = regexp.MustCompile(`^[0-9A-Za-z_.+=:][0-9A-Za-z_.+=:-]*$`)
	uuidForm     = regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`)
	placeForm    = regexp.MustCompile(`^[0-9A-Za-z/\[][0-9A-Za-z_.:/\[\]+=-]*$`)
	wordForm     = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`)
)

// The forms in words, for the administrator.
const (
	aPortal = "an address or a DNS name with a port"
	aHost   = "an address or a DNS name"
	aPort   = "a port number"
	aTarget = "the name of an iSCSI target (iqn, eui or naa)"
	aWWN    = "a port's name of 16 hexadecimal digits"
	aWWID   = "the NAA or EUI identifier of a disk"
	anNQN   = "the name of an NVMe subsystem"
	aDevice = "a UUID or NGUID"
	anImage = "POOL/IMAGE of Ceph"
	aName   = "a name of Ceph"
	aWord   = "one word"
)

// UnmarshalJSON puts the IPv6 address of a portal in brackets, which some backends leave out.
func (p *portal) UnmarshalJSON(data []byte) error {
	return read(p, data, canonical, isPortal, aPortal)
}

// UnmarshalJSON removes the brackets of an IPv6 address.
func (h *host) UnmarshalJSON(data []byte) error { return read(h, data, unbracketed, isHost, aHost) }

// UnmarshalJSON accepts a number, too.
func (p *port) UnmarshalJSON(data []byte) error {
	var n json.Number
	if json.Unmarshal(data, &n) == nil {
		data = []byte(strconv.Quote(n.String()))
	}
	return read(p, data, as, isPort, aPort)
}

// UnmarshalJSON reads the name of a target.
func (n *scsiName) UnmarshalJSON(data []byte) error {
	return read(n, data, as, scsiNameForm.MatchString, aTarget)
}

// UnmarshalJSON spells a port's name as the kubelet does.
func (n *wwn) UnmarshalJSON(data []byte) error {
	return read(n, data, spelled, wwnForm.MatchString, aWWN)
}

// UnmarshalJSON spells the name of a disk as udev does.
func (n *wwid) UnmarshalJSON(data []byte) error {
	return read(n, data, identified, wwidForm.MatchString, aWWID)
}

// UnmarshalJSON reads the name of a subsystem.
func (n *nqn) UnmarshalJSON(data []byte) error { return read(n, data, as, nqnForm.MatchString, anNQN) }

// UnmarshalJSON reads an identifier of a device.
func (d *deviceID) UnmarshalJSON(data []byte) error {
	return read(d, data, as, deviceForm.MatchString, aDevice)
}

// UnmarshalJSON reads the path of an image.
func (i *imagePath) UnmarshalJSON(data []byte) error { return read(i, data, as, isImagePath, anImage) }

// UnmarshalJSON reads a name of Ceph.
func (n *cephName) UnmarshalJSON(data []byte) error { return read(n, data, as, isCephName, aName) }

// UnmarshalJSON reads a word.
func (w *word) UnmarshalJSON(data []byte) error {
	return read(w, data, as, wordForm.MatchString, aWord)
}

// UnmarshalJSON reads a user name or a password. open-iscsi writes both into a file of lines.
func (l *login) UnmarshalJSON(data []byte) error {
	text, err := textOf(data)
	if err == nil && !isPrintable(text) {
		err = errors.New("a user name or a password has control characters")
	}
	*l = login(text)
	return err
}

// read reads a text that, changed to the spelling of Kubernetes, has a form. Its error shows the
// text.
func read[T ~string](into *T, data []byte, spell func(string) string, hasForm func(string) bool, form string) error {
	text, err := textOf(data)
	if err != nil {
		return err
	}
	if *into = T(spell(text)); text != "" && !hasForm(string(*into)) {
		*into = ""
		return fmt.Errorf("%q must be %s", text, form)
	}
	return nil
}

// textOf reads a text. The JSON package names the field of an error that is returned as it is.
func textOf(data []byte) (string, error) {
	var text string
	err := json.Unmarshal(data, &text)
	return text, err
}

// as changes nothing.
func as(text string) string { return text }

// bracketed returns a portal with its IPv6 address in brackets. A portal ends with its port.
func bracketed(portal string) string {
	i := strings.LastIndex(portal, ":")
	if i < 0 || strings.HasPrefix(portal, "[") {
		return portal
	}
	if address, err := netip.ParseAddr(portal[:i]); err != nil || !address.Is6() {
		return portal
	}
	return net.JoinHostPort(portal[:i], portal[i+1:])
}

// canonical returns a portal with its IPv6 address as the kernel writes it, which is how the kubelet
// searches it: GetISCSIPortalHostMapForTarget in pkg/volume/util.
func canonical(portal string) string {
	host, port, err := net.SplitHostPort(bracketed(portal))
	if err != nil {
		return portal
	}
	if address, err := netip.ParseAddr(host); err == nil {
		host = address.String()
	}
	return net.JoinHostPort(host, port)
}

func unbracketed(host string) string {
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// spelled returns a port's name as the kubelet spells it.
func spelled(port string) string { return strings.ToLower(strings.ReplaceAll(port, ":", "")) }

// identified returns the name of a disk as udev's scsi_id writes it, which begins with the type of
// the identifier: 3 for NAA, 2 for EUI. The kubelet searches /dev/disk/by-id for scsi- and this name,
// and for no other spelling (findDiskWWIDs in pkg/volume/fc).
func identified(disk string) string {
	return strings.NewReplacer("naa.", "3", "eui.", "2").Replace(strings.ToLower(disk))
}

// isPortal reports whether a text is HOST:PORT, with an IPv6 address in brackets, or a HOST that
// the kubelet completes by iSCSI's port: it does so where there is no colon (portalMounter in
// pkg/volume/iscsi).
func isPortal(text string) bool {
	if !strings.Contains(text, ":") {
		return isHost(text)
	}
	host, port, err := net.SplitHostPort(text)
	return err == nil && isHost(host) && isPort(port)
}

// addressOf returns the address of a portal, or an error if that is a DNS name.
func addressOf(portal string) (netip.Addr, error) {
	host, _, err := net.SplitHostPort(portal)
	if err != nil {
		host = portal
	}
	return netip.ParseAddr(host)
}

// isHost reports whether a text is an address or a DNS name. An address of one link only has a
// zone, which may be any text.
func isHost(text string) bool {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Zone() == ""
	}
	return len(text) <= 253 && hostName.MatchString(text)
}

func (h host) isAddress() bool {
	_, err := netip.ParseAddr(string(h))
	return err == nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == text && n > 0
}

// isImagePath reports whether a text is POOL/IMAGE. With one more slash Ceph reads the first part
// as a pool and the second as a namespace.
func isImagePath(text string) bool {
	pool, image, ok := strings.Cut(text, "/")
	return ok && isCephName(pool) && isCephName(image)
}

// isCephName reports whether a text is a name that no program of Ceph reads as more than that: "@"
// begins the name of a snapshot, and ceph-csi joins an image's name to a path.
func isCephName(text string) bool { return cephForm.MatchString(text) && strings.Trim(text, ".") != "" }

// isPlace reports whether a text is the name of a file or of what a server exports. It leads to no
// folder above.
func isPlace(text string) bool { return placeForm.MatchString(text) && !strings.Contains(text, "..") }

func isUUID(text string) bool { return uuidForm.MatchString(text) }

func isWord(text string) bool { return wordForm.MatchString(text) }

func isWWN(text string) bool { return wwnForm.MatchString(spelled(text)) }

func isWWID(text string) bool { return wwidForm.MatchString(identified(text)) }

func isFlag(text string) bool { return text == "true" || text == "false" }

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// isPrintable reports whether a text is one line that a terminal shows as it is.
func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
