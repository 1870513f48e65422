package workeraccess_test

import (
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// table is the documentation's table of all rules, in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| verbs | on | needed | why | without it |\n|---|---|---|---|---|\n")
	for _, r := range workeraccess.Rules() {
		need := r.Need.Text
		if need == "" {
			need = "always"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.Join(r.Verbs, ", "), object(r), need, r.Why, r.Without)
	}
	return b.String()
}

func object(r workeraccess.Rule) string {
	text := strings.Join(r.Resources, ", ")
	if r.Group != "" {
		text += "." + r.Group
	}
	if len(r.Names) > 0 {
		text += " `" + strings.Join(r.Names, "`, `") + "`"
	}
	switch {
	case r.Namespace != "":
		text += " in `" + r.Namespace + "`"
	case r.Everywhere:
		text += " in all namespaces"
	}
	return text
}
