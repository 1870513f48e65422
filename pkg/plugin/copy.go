package plugin

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/archive"
	"github.com/jobferry/jobferry/pkg/util/quantities"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// copyFlags are those of cp.
type copyFlags struct {
	choice    podFlags
	container string
	maxSize   string
}

func newCopy(c *cli) *cobra.Command {
	f := &copyFlags{}
	cmd := &cobra.Command{
		Use:   "cp JOB:PATH LOCAL | cp LOCAL JOB:DIRECTORY",
		Short: "Copy files from and to a Pod of a Job, through the hub",
		Long: templates.LongDesc(`
			Copy a file or directory from a container of a Job's Pod, or into one, in its worker, through the hub. By
			default, cp uses the newest running Pod. It runs the command tar in the container, which must have it. You need
			permission to create jobs/exec of subresources.jobferry.dev on the hub.

			From a container: if LOCAL is a directory, the copy is made in it; otherwise LOCAL is the copy's name. Only
			files and directories are copied, not links. Into a container: the copy is made in DIRECTORY, which must be
			there, and keeps its name.`),
		Example: templates.Examples(`
			# The results of the newest Pod
			kubectl jobferry cp train:/results ./results

			# A file for the Pod of one index
			kubectl jobferry cp input.csv shards:/data --index 7`),
		Args: positional(2, 2, "a source and a destination"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.copy(cmd, f, args[0], args[1]) },
	}
	f.choice.add(c, cmd)
	addContainer(cmd, &f.container)
	cmd.Flags().StringVar(&f.maxSize, "max-size", "10Gi", "Copy at most this many bytes from a container")
	return cmd
}

// remotePath splits JOB:PATH. What can't be a Job's name before the colon, such as ./a:b, is a
// local file.
func remotePath(arg string) (job, file string, ok bool) {
	job, file, ok = strings.Cut(arg, ":")
	job = jobName(job)
	return job, file, ok && file != "" && len(validation.IsDNS1123Subdomain(job)) == 0
}

func (c *cli) copy(cmd *cobra.Command, f *copyFlags, from, to string) error {
	size, err := quantities.Parse(f.maxSize)
	if err != nil || size.Value() <= 0 {
		return usage(cmd, "--max-size %s: it must be a number of bytes such as 500Mi", f.maxSize)
	}
	job, file, isRemote := remotePath(from)
	toJob, directory, toRemote := remotePath(to)
	if isRemote == toRemote {
		return usage(cmd, "one of %s and %s must be JOB:PATH, and the other a local file", from, to)
	}
	if toRemote {
		job = toJob
	}
	subresources, known, err := c.subresourcesOf(cmd.Context(), job)
	if err != nil {
		return err
	}
	container := remoteTar{subresources: subresources, choice: f.choice.choice(cmd), container: c.containerFor(known, f.container, false)}
	var done archive.Result
	if isRemote {
		done, err = container.download(cmd.Context(), path.Clean(file), to, size.Value())
	} else {
		done, err = container.upload(cmd.Context(), from, directory)
	}
	for _, name := range done.Skipped {
		c.say("skipped, for it's neither a file nor a directory: %s", text.Clean(name, text.MaxMessage))
	}
	if err != nil {
		return fmt.Errorf("cp, after %d files and %d bytes: %w", done.Files, done.Bytes, err)
	}
	return nil
}
