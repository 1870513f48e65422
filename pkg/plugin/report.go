package plugin

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// report is the flag -o of the verbs whose answer is no object of an API.
type report struct{ format string }

func addReport(cmd *cobra.Command) *report {
	r := &report{}
	cmd.Flags().StringVarP(&r.format, "output", "o", "", "Output format: json or yaml (default: text)")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	alsoCheck(cmd, r.check)
	return r
}

func (r *report) check(cmd *cobra.Command) error {
	if r.asText() || r.format == "json" || r.format == "yaml" {
		return nil
	}
	return usage(cmd, "--output %s: it must be json or yaml", r.format)
}

func (r *report) asText() bool { return r.format == "" }

// print writes a value, without characters that control a terminal.
func (r *report) print(c *cli, value any) error {
	text, err := json.MarshalIndent(value, "", "    ") // as kubectl does
	if err != nil {
		return err
	}
	if r.format == "yaml" { // its encoder escapes such characters
		text, err = yaml.JSONToYAML(text)
	} else {
		text = append([]byte(show.EscapedJSON(string(text))), '\n')
	}
	if err != nil {
		return err
	}
	_, err = c.Out.Write(text)
	return err
}
