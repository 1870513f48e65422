package view

import "strings"

// Excerpt is a description without those of its sections that aren't named: a section begins with
// an empty line, and its title.
func Excerpt(description string, sections ...string) string {
	all := strings.Split(strings.TrimSpace(description), "\n\n")
	kept := all[:1]
	for _, section := range all[1:] {
		for _, title := range sections {
			if strings.HasPrefix(section, title+":") {
				kept = append(kept, section)
			}
		}
	}
	var b strings.Builder
	for line := range strings.Lines(strings.Join(kept, "\n\n") + "\n...") {
		b.WriteString(strings.TrimRight(indent+indent+strings.TrimRight(line, " \n"), " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
