package plugin

import (
	"archive/tar"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tars has the container write an archive of one file, and then what a hostile one writes.
func tars(name, content string, then func(io.Writer)) func([]string, io.Reader, io.Writer) {
	return func(_ []string, _ io.Reader, out io.Writer) {
		archive := tar.NewWriter(out)
		_ = archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg, Mode: 0o644})
		_, _ = io.WriteString(archive, content)
		_ = archive.Close()
		if then != nil {
			then(out)
		}
	}
}

func forever(out io.Writer) {
	for zeros := make([]byte, 32<<10); ; {
		if _, err := out.Write(zeros); err != nil {
			return
		}
	}
}

func TestCopyFrom(t *testing.T) {
	for name, row := range map[string]struct {
		container func([]string, io.Reader, io.Writer)
		args      []string
		code      int
		says      string
	}{
		"into a directory":              {tars("./a.txt", "one", nil), []string{"cp", "shards:/data/a.txt", "DIR"}, 0, ""},
		"under a name":                  {tars("./data/a.txt", "one", nil), []string{"cp", "job/shards:data", "DIR/new", "--index", "1"}, 0, ""},
		"what else it sends":            {tars("./b", "one", nil), []string{"cp", "shards:/data/a.txt", "DIR"}, exitFailed, "isn't below"},
		"what isn't an archive":         {func(_ []string, _ io.Reader, out io.Writer) { _, _ = io.WriteString(out, strings.Repeat("?", 2000)) }, []string{"cp", "shards:/a.txt", "DIR"}, exitFailed, "the archive is incomplete"},
		"no end after the archive":      {tars("./a.txt", "one", forever), []string{"cp", "shards:/data/a.txt", "DIR"}, exitFailed, "doesn't end after the archive"},
		"more than the limit":           {tars("./a.txt", "one", nil), []string{"cp", "shards:/data/a.txt", "DIR", "--max-size", "2"}, exitFailed, "the limit is reached"},
		"a command that fails":          {nil, []string{"cp", "shards:/data/a.txt", "DIR"}, exitFailed, "exit code 7: trouble"},
		"no local directory":            {tars("./a.txt", "one", nil), []string{"cp", "shards:/a.txt", "DIR/no/where"}, exitFailed, "no such file"},
		"both local":                    {nil, []string{"cp", "./shards:a", "DIR"}, exitUsage, "must be JOB:PATH"},
		"both remote":                   {nil, []string{"cp", "shards:/a", "other:/b"}, exitUsage, "must be JOB:PATH"},
		"a way up":                      {nil, []string{"cp", "shards:a/../..", "DIR"}, exitFailed, "name the directory"},
		"no number of bytes":            {nil, []string{"cp", "shards:/a", "DIR", "--max-size", "much"}, exitUsage, "--max-size"},
		"a local file that isn't there": {nil, []string{"cp", "DIR/nothing", "shards:/a"}, exitFailed, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := newHub(t), t.TempDir()
			h.container = row.container
			args := slices.Clone(row.args)
			for i := range args {
				args[i] = strings.Replace(args[i], "DIR", dir, 1)
			}
			got := h.run(args...)
			if got.code != row.code || !strings.Contains(got.err, row.says) {
				t.Errorf("%+v", got)
			}
			var found []string
			_ = filepath.WalkDir(dir, func(file string, entry os.DirEntry, _ error) error {
				if entry.Type().IsRegular() {
					found = append(found, file)
				}
				return nil
			})
			if row.code == 0 && len(found) != 1 {
				t.Errorf("files %v", found)
			}
		})
	}
}

func TestCopyTo(t *testing.T) {
	h, file := newHub(t), filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(file, []byte("1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var command []string
	var names []string
	h.container = func(asked []string, in io.Reader, _ io.Writer) {
		command = asked
		for archive := tar.NewReader(in); ; {
			header, err := archive.Next()
			if err != nil {
				return
			}
			names = append(names, header.Name)
		}
	}
	got := h.run("cp", file, "shards:/data")
	if got.code != 0 || strings.Join(command, " ") != "tar xmf - -C /data" || !slices.Equal(names, []string{"in.csv"}) {
		t.Errorf("%+v: %v got %v", got, command, names)
	}
}

// Ports are checked before anything is asked.
func TestPortForwardArguments(t *testing.T) {
	for args, says := range map[string]string{
		"port-forward shards":                        "a JOB and at least one port is missing",
		"port-forward shards http":                   "http",
		"port-forward shards 80 --address elsewhere": "elsewhere",
		"port-forward shards 80 --pod a --index 1":   "not both",
	} {
		h := newHub(t)
		got := h.run(strings.Fields(args)...)
		asked := slices.ContainsFunc(h.asked, func(r *http.Request) bool { return r.URL.Path == subPath+"portforward" })
		if got.code != exitUsage || !strings.Contains(got.err, says) || asked {
			t.Errorf("%s: %+v, asked %v", args, got, asked)
		}
	}
}
