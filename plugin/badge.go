package plugin

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/conform"
)

// picture is a badge with a text on a colour.
const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="220" height="20" role="img" aria-label="flex contract: %[1]s">
  <rect width="90" height="20" fill="#555"/>
  <rect x="90" width="130" height="20" fill="%[2]s"/>
  <g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">
    <text x="45" y="14">flex contract</text>
    <text x="155" y="14">%[1]s</text>
  </g>
</svg>
`

// badge returns a picture of a report, for the pages of a provisioner.
func badge(report *conform.Report) string {
	if n := report.Broken(); n > 0 {
		return fmt.Sprintf(picture, fmt.Sprintf("%d broken", n), "#c0392b")
	}
	return fmt.Sprintf(picture, fmt.Sprintf("%d kept", report.Count(conform.Kept)), "#2e7d32")
}
