package test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"
)

// A picture of docs/pictures is made of the template beside it: make golden writes it anew.
func TestThePicturesAreMadeOfTheirTemplates(t *testing.T) {
	sources := tracked(t, ".svg.tmpl")
	if len(sources) == 0 {
		t.Fatal("there are no pictures")
	}
	for _, source := range sources {
		made := new(strings.Builder)
		shapes := template.FuncMap{
			"picture": func(width, height int, title string) string {
				return picture(t, width, height, title)
			},
			"terminal": func() string { return terminal(t) },
			"box":      box, "text": words, "arrow": arrow, "leaf": leaf,
		}
		drawing, err := template.New(source).Funcs(shapes).Parse(content(t, source))
		if err != nil {
			t.Fatal(err)
		}
		if err := drawing.Execute(made, nil); err != nil {
			t.Fatal(err)
		}
		mustBePicture(t, strings.TrimSuffix(source, ".tmpl"), made.String())
	}
}

// mustBePicture compares a picture with its file.
func mustBePicture(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join(repository, file), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if content(t, file) != want {
		t.Errorf("%s is not what is made of its sources: make golden", file)
	}
	for reader := xml.NewDecoder(strings.NewReader(want)); ; {
		if _, err := reader.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// Whoever looks for a recipe finds each in the picture.
func TestThePictureOfRecipesHasEach(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^\* \[([^\]]+)\]`)
	for _, m := range listed.FindAllStringSubmatch(content(t, "docs/recipes/README.md"), -1) {
		if !strings.Contains(content(t, "docs/pictures/recipes.svg"), ">"+m[1]+"</text>") {
			t.Errorf("docs/pictures/recipes.svg lacks %s", m[1])
		}
	}
}

// picture is the beginning of a picture, with its title for those who do not see it.
func picture(t *testing.T, width, height int, title string) string {
	t.Helper()
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+
		"\n<title>%s</title>\n<style>\n%s</style>\n"+
		`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"`+
		` orient="auto-start-reverse"><path class="tip" d="M0 0 L10 5 L0 10 z"/></marker></defs>`+"\n"+
		`<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>`,
		width, height, html.EscapeString(strings.Join(strings.Fields(title), " ")),
		content(t, "docs/pictures/style.css"), width-1, height-1)
}

// box is a rectangle of a class, which comes first, with lines of text in its middle. The first of
// them is bold.
func box(x, y, width, height int, in ...string) string {
	class, lines := in[0], in[1:]
	out := fmt.Sprintf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
		class, x, y, width, height)
	for i, line := range lines {
		style := "m s"
		if i == 0 {
			style = "m b"
		}
		out += words(x+width/2, y+height/2+5-9*(len(lines)-1)+18*i, style, line)
	}
	return out
}

// words is a line of text with classes.
func words(x, y int, class, line string) string {
	return "\n" + fmt.Sprintf(`<text x="%d" y="%d" class="%s">%s</text>`,
		x, y, class, html.EscapeString(line))
}

// arrow is a path that ends with an arrow's tip.
func arrow(class, path string) string {
	return fmt.Sprintf(`<path class="line %s" d="%s" marker-end="url(#tip)"/>`, class, path)
}

// leaf is a recipe, and when to take it, of a place whose box ends at x 194.
func leaf(from, y int, when, recipe string) string {
	return fmt.Sprintf(`<rect class="lane" x="232" y="%d" width="608" height="30" rx="6"/>`+
		`<path class="line" d="M194 %d C216 %d 206 %d 232 %d"/>`, y-15, from, from, y, y) +
		words(248, y+5, "", when) + box(660, y-13, 176, 26, "ours", recipe)
}

// terminal is the example of kubectl flex why from its page, which a test of the plugin compares
// with what the command prints.
func terminal(t *testing.T) string {
	t.Helper()
	const command = "kubectl flex why data --namespace=shop"
	shown := regexp.MustCompile("(?s)```bash\n" + command + "\n.*?```\n(?:.*?)```\n(.*?)```")
	m := shown.FindStringSubmatch(content(t, "docs/kubectl-flex.md"))
	if m == nil {
		t.Fatal("the page has no example of why")
	}
	lines := strings.Split("$ "+command+"\n"+strings.TrimSuffix(m[1], "\n"), "\n")
	if len(lines) > 16 {
		t.Error("the terminal has 16 lines: make it higher")
	}
	key := regexp.MustCompile(`^(claim|state|more|cause|remedy|next)\b`)
	out := ""
	for i, line := range lines {
		line = html.EscapeString(line)
		line = key.ReplaceAllString(line, `<tspan class="key $1">$1</tspan>`)
		out += fmt.Sprintf(`<text x="24" y="%d" class="tty">%s</text>`+"\n", 66+21*i, line)
	}
	return out
}
