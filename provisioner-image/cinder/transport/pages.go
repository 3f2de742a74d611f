package transport

import "fmt"

// mostPages is how many pages of a list are read: a million volumes by Cinder's own limit of a page
// (osapi_max_limit). Where the next page begins, the storage says.
const mostPages = 1000

// Pages are the addresses of a list's pages after the first one.
type Pages map[string]bool

// Add adds the next page, and returns an error if the list would have no end.
func (p Pages) Add(next, doing string) error {
	switch {
	case p[next]:
		return &AnswerError{Said: "the list has no end: a page names an earlier page as its next one", Asked: doing}
	case len(p) >= mostPages:
		return &AnswerError{Said: fmt.Sprintf("the list has more than %d pages", mostPages), Asked: doing}
	}
	p[next] = true
	return nil
}
