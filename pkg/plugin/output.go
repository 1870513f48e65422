package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

const wide = "wide"

// output is the flag -o of the verbs that list objects.
type output struct {
	flags *genericclioptions.PrintFlags
}

func addOutput(cmd *cobra.Command) output {
	o := output{genericclioptions.NewPrintFlags("")}
	o.flags.AddFlags(cmd)
	flag := cmd.Flags().Lookup("output")
	flag.Usage = "Output format. One of: (" + strings.Join(o.formats(), ", ") + ")."
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats(), cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o output) formats() []string {
	formats := append(o.flags.AllowedFormats(), wide)
	slices.Sort(formats)
	return slices.Compact(formats)
}

func (o output) format() string { return *o.flags.OutputFormat }

// asTable reports whether the output is a table.
func (o output) asTable() bool { return o.format() == "" || o.format() == wide }

// printNamed writes a list, or, if only one name was given, its object.
func (o output) printNamed(c *cli, names []string, list runtime.Object) error {
	if len(names) != 1 {
		return o.print(c, list)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return o.print(c, item) })
}

// print writes objects, for -o json and the like.
func (o output) print(c *cli, object runtime.Object) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return &usageError{"kubectl jobferry", err}
	}
	if err := typed(object); err != nil {
		return err
	}
	var text strings.Builder
	add := func(item runtime.Object) error { return printer.PrintObj(item, &text) }
	if meta.IsListType(object) && o.format() == "name" {
		err = meta.EachListItem(object, add)
	} else {
		err = add(object)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, o.clean(text.String()))
	return err
}

// clean returns a text of the format without characters that control a terminal.
func (o output) clean(text string) string {
	switch o.format() {
	case "json":
		return show.EscapedJSON(text)
	case "yaml", "kyaml": // their encoders escape such characters
		return text
	default:
		return show.Printable(text)
	}
}

// typed sets the kind of an object, and of those in a list. Decoders leave it out.
func typed(object runtime.Object) error {
	kind, err := apiutil.GVKForObject(object, access.Scheme)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !meta.IsListType(object) {
		return nil
	}
	return meta.EachListItem(object, func(item runtime.Object) error { return typed(item) })
}

// table writes a table, or reports that it is empty.
func (c *cli) table(t show.Table, nothing string) error {
	if len(t.Rows) == 0 {
		c.say("%s", nothing)
		return nil
	}
	return t.Write(c.Out, c.palette())
}

// jobName accepts "pi", "job/pi" and what -o name prints.
func jobName(arg string) string { return afterKind(arg, "job", "jobs", "job.batch", "jobs.batch") }

// workerName accepts "west", "wc/west" and what -o name prints.
func workerName(arg string) string {
	return afterKind(arg, "wc", "workercluster", "workerclusters", "workercluster.jobferry.dev", "workerclusters.jobferry.dev")
}

func afterKind(arg string, kinds ...string) string {
	if kind, name, ok := strings.Cut(arg, "/"); ok && slices.Contains(kinds, kind) {
		return name
	}
	return arg
}

// namesOf are the names of objects.
func namesOf[T any, P interface {
	*T
	metav1.Object
}](objects []T) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = P(&objects[i]).GetName()
	}
	return names
}

// plural returns "1 Job", "2 Jobs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
