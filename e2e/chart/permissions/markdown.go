package permissions

import (
	"fmt"
	"strings"
)

// Markdown is the table of a part for the documentation.
func Markdown(part Part) string {
	var text strings.Builder
	text.WriteString("| verb | on | where | why |\n|---|---|---|---|\n")
	for _, row := range Of(part) {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", strings.Join(row.Verbs, ", "), row.subject(), row.where(), row.Why)
	}
	return text.String()
}

func (r Row) subject() string {
	subject := r.Resource
	if r.Group != "" {
		resource, sub, _ := strings.Cut(r.Resource, "/")
		subject = strings.TrimSuffix(resource+"."+r.Group+"/"+sub, "/")
	}
	subject = "`" + subject + "`"
	if len(r.Names) > 0 {
		subject += " " + strings.Join(r.Names, ", ")
	}
	return subject
}

func (r Row) where() string {
	switch r.Namespace {
	case "":
		return "everywhere"
	case Home:
		return "its own namespace"
	default:
		return "`" + r.Namespace + "`"
	}
}

// Section replaces what is between the markers of a part in a page, `<!-- table: NAME -->` and
// `<!-- end -->`.
func Section(page string, part Part) (string, error) {
	begin, end := "<!-- table: "+string(part)+" -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page has no %q ... %q", strings.TrimSpace(begin), end)
	}
	return before + begin + Markdown(part) + end + after, nil
}
