package archive_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/plugin/archive"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// member is one of a stream.
type member struct {
	name, content string
	kind          byte
	link          string
	mode          int64
}

func stream(t *testing.T, members ...member) io.Reader {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, m := range members {
		header := &tar.Header{Name: m.name, Typeflag: m.kind, Linkname: m.link, Mode: m.mode, Size: int64(len(m.content))}
		if m.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

var plenty = archive.Limits{Bytes: 1 << 20, Members: 100}

// unpack asks for "from" and writes it to "to" in a directory beside which there is nothing to be
// written.
func unpack(t *testing.T, from string, in io.Reader, limits archive.Limits, before ...func(dir string)) (string, archive.Result, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "to")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, do := range before {
		do(dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	done, err := archive.Unpack(in, archive.Target{Root: root, From: from, To: "copy"}, limits)
	if all := files(t, filepath.Dir(dir)); slices.ContainsFunc(all, func(f string) bool { return f != "to" && !strings.HasPrefix(f, "to/") }) {
		t.Errorf("written outside: %v", all)
	}
	return dir, done, err
}

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, file); name != "." {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnpack(t *testing.T) {
	dir, done, err := unpack(t, "results", stream(t,
		member{name: "./results/", kind: tar.TypeDir, mode: 0o700},
		member{name: "./results/a", content: "one", mode: 0o4755},
		member{name: "results/deep/er/b", content: "two", mode: 0o444},
	), plenty)
	if err != nil || done.Files != 2 || done.Bytes != 6 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"copy", "copy/a", "copy/deep", "copy/deep/er", "copy/deep/er/b"}) {
		t.Errorf("%v", got)
	}
	info, err := os.Stat(filepath.Join(dir, "copy/a"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode(); mode&^fs.ModePerm != 0 || mode&0o100 == 0 {
		t.Errorf("mode %v", mode)
	}

	dir, _, err = unpack(t, "f", stream(t, member{name: "./f", content: "file"}), plenty)
	if content, _ := os.ReadFile(filepath.Join(dir, "copy")); err != nil || string(content) != "file" {
		t.Errorf("a single file: %q, %v", content, err)
	}
	dir, _, err = unpack(t, ".", stream(t, member{name: "./", kind: tar.TypeDir}, member{name: "./x", content: "file"}), plenty)
	if content, _ := os.ReadFile(filepath.Join(dir, "copy", "x")); err != nil || string(content) != "file" {
		t.Errorf("all of a directory: %q, %v", content, err)
	}
}

// Whatever a container sends, only what was asked for is written, below the directory.
func TestHostileStreams(t *testing.T) {
	outward := func(dir string) {
		if err := os.Symlink("../..", filepath.Join(dir, "copy")); err != nil {
			t.Fatal(err)
		}
	}
	device := member{name: "r/null", kind: tar.TypeChar}
	for name, row := range map[string]struct {
		members []member
		before  func(string)
		limits  archive.Limits
		error   string
		skipped int
	}{
		"a way up":                        {members: []member{{name: "../evil", content: "x"}}, error: "isn't below"},
		"a way up below the name":         {members: []member{{name: "r/../../evil", content: "x"}}, error: "isn't below"},
		"an absolute name":                {members: []member{{name: "/etc/evil", content: "x"}}, error: "isn't below"},
		"another name":                    {members: []member{{name: ".bashrc", content: "x"}}, error: "isn't below"},
		"a name that only begins so":      {members: []member{{name: "rr", content: "x"}}, error: "isn't below"},
		"a link, and a file through it":   {members: []member{{name: "r/l", kind: tar.TypeSymlink, link: "../.."}, {name: "r/l/evil", content: "x"}}, skipped: 1},
		"a link to a file":                {members: []member{{name: "r", kind: tar.TypeSymlink, link: "../evil"}, {name: "r", content: "x"}}, skipped: 1},
		"a hard link":                     {members: []member{{name: "r/h", kind: tar.TypeLink, link: "/etc/passwd"}}, skipped: 1},
		"a device":                        {members: []member{device}, skipped: 1},
		"a link that was there, outwards": {members: []member{{name: "r/evil", content: "x"}}, before: outward, error: "escapes"},
		"a file where a directory is":     {members: []member{{name: "r", kind: tar.TypeDir}, {name: "r", content: "x"}}, error: "is a directory"},
		"too many bytes":                  {members: []member{{name: "r/a", content: "1234"}, {name: "r/b", content: "5"}}, limits: archive.Limits{Bytes: 4, Members: 9}, error: "more bytes"},
		"just enough":                     {members: []member{{name: "r/a", content: "1234"}, {name: "r/b"}}, limits: archive.Limits{Bytes: 4, Members: 2}},
		"too many files":                  {members: []member{{name: "r/a"}, {name: "r/b"}, {name: "r/c"}}, limits: archive.Limits{Bytes: 4, Members: 2}, error: "more than 2 files"},
		"many that are skipped":           {members: slices.Repeat([]member{device}, 90), skipped: 20},
	} {
		t.Run(name, func(t *testing.T) {
			if row.limits == (archive.Limits{}) {
				row.limits = plenty
			}
			var before []func(string)
			if row.before != nil {
				before = append(before, row.before)
			}
			dir, done, err := unpack(t, "r", stream(t, row.members...), row.limits, before...)
			if (err == nil) != (row.error == "") || err != nil && !strings.Contains(err.Error(), row.error) || len(done.Skipped) != row.skipped {
				t.Errorf("%+v, %v; want %q, %d skipped; there is %v", done, err, row.error, row.skipped, files(t, dir))
			}
		})
	}
}

// sparse is a stream of 1.5 KB with a file of 8 GiB that is one hole.
func sparse(t *testing.T) io.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: "r", Typeflag: tar.TypeReg, Mode: 0o600, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	header, size := b.Bytes(), []byte("77777777777\x00")
	header[156] = tar.TypeGNUSparse
	copy(header[386:], size)                   // where the only data begins,
	copy(header[398:], "00000000000\x00")      // of which there are none,
	copy(header[483:], size)                   // and the real size
	copy(header[148:], strings.Repeat(" ", 8)) // the checksum is of blanks in its place
	sum := 0
	for _, c := range header[:512] {
		sum += int(c)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return bytes.NewReader(append(header, make([]byte, 1024)...))
}

// A file that is a hole is tiny in the stream, and counts by its size.
func TestSparseFilesCount(t *testing.T) {
	_, done, err := unpack(t, "r", sparse(t), archive.Limits{Bytes: 1 << 20, Members: 9})
	if err == nil || !strings.Contains(err.Error(), "more bytes") || done.Bytes != 1<<20 {
		t.Errorf("%+v, %v", done, err)
	}
}

// What is packed is unpacked.
func TestPack(t *testing.T) {
	source := filepath.Join(t.TempDir(), "in")
	if err := os.MkdirAll(filepath.Join(source, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a": "one", "deep/b": "two", "run": "#!"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	packed, err := archive.Pack(&b, source, "in")
	if err != nil || packed.Files != 3 || packed.Bytes != 8 {
		t.Fatalf("%+v, %v", packed, err)
	}
	dir, unpacked, err := unpack(t, "in", &b, plenty)
	if err != nil || unpacked.Files != 3 || unpacked.Bytes != 8 || !slices.Equal(unpacked.Skipped, []string{"in/link"}) {
		t.Errorf("%+v, %v", unpacked, err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"copy", "copy/a", "copy/deep", "copy/deep/b", "copy/run"}) {
		t.Errorf("%v", got)
	}
}

// Whatever the bytes are, nothing is written outside, and no more than the limits.
func FuzzUnpack(f *testing.F) {
	for _, m := range []member{{name: "r/a", content: "x"}, {name: "../r", content: "x"}, {name: "r", kind: tar.TypeSymlink, link: "/"}} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		_ = out.WriteHeader(&tar.Header{Name: m.name, Typeflag: tar.TypeReg, Size: int64(len(m.content))})
		_, _ = io.WriteString(out, m.content)
		_ = out.Close()
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		_, done, _ := unpack(t, "r", bytes.NewReader(content), archive.Limits{Bytes: 1 << 10, Members: 10})
		if done.Bytes > 1<<10 || done.Files > 10 {
			t.Errorf("%+v", done)
		}
	})
}

// A name of many directories makes many: they count as members do.
func TestDirectoriesCount(t *testing.T) {
	deep := func(first string) member { return member{name: "r/" + first + strings.Repeat("/d", 40), content: "x"} }
	_, _, err := unpack(t, "r", stream(t, deep("a")), archive.Limits{Bytes: 1 << 20, Members: 50})
	if err != nil {
		t.Errorf("one file in 41 directories: %v", err)
	}
	dir, _, err := unpack(t, "r", stream(t, deep("a"), deep("b"), deep("c")), archive.Limits{Bytes: 1 << 20, Members: 50})
	if made := len(files(t, dir)); err == nil || made > 60 {
		t.Errorf("%d files and directories were made: %v", made, err)
	}
	_, _, err = unpack(t, "r", stream(t, member{name: "r" + strings.Repeat("/d", 40), kind: tar.TypeDir}), archive.Limits{Bytes: 1 << 20, Members: 20})
	if err == nil {
		t.Error("a directory in 39 others is made")
	}
	var beside []member
	for i := range 45 {
		beside = append(beside, member{name: fmt.Sprintf("r/one/two/%d", i), content: "x"})
	}
	if _, _, err := unpack(t, "r", stream(t, beside...), archive.Limits{Bytes: 1 << 20, Members: 50}); err != nil {
		t.Errorf("45 files in one directory: %v", err)
	}
}

// A stream of very many directories, of which none is made: they are counted, not held.
func TestDirectoriesArentHeld(t *testing.T) {
	const n, most = 200_000, 1 << 20
	from, to := io.Pipe()
	var held int64
	go func() {
		out, before := tar.NewWriter(to), int64(0)
		for i := range n {
			if i == 10 {
				before = costtest.Heap()
			}
			if out.WriteHeader(&tar.Header{Name: fmt.Sprintf("r/%d/link", i), Typeflag: tar.TypeSymlink, Linkname: "x"}) != nil {
				return // it's refused
			}
		}
		held = costtest.Heap() - before
		_ = to.CloseWithError(out.Close())
	}()
	if _, done, err := unpack(t, "r", from, archive.Limits{Bytes: 1 << 20, Members: n + 1}); err != nil || len(done.Skipped) == 0 || held > most {
		t.Errorf("%d KiB are held: %v", held>>10, err)
	}
}

// tar goes through a tree depth first: each of its directories counts once.
func TestDirectoriesOfATreeCountOnce(t *testing.T) {
	var tree []member
	for _, name := range []string{"r/", "r/a/", "r/a/1", "r/a/b/", "r/a/b/c/", "r/a/b/c/2", "r/a/b/3", "r/a/4", "r/ab/", "r/ab/5", "r/6"} {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(name, "/") {
			kind = tar.TypeDir
		}
		tree = append(tree, member{name: "./" + name, kind: kind})
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("r/%d", i))
	}
	count := func(most int, members ...member) error {
		_, _, err := unpack(t, "r", stream(t, members...), archive.Limits{Bytes: 1 << 20, Members: most})
		return err
	}
	if err := count(len(tree), tree...); err != nil {
		t.Error(err)
	}
	var deep []member
	for _, name := range names {
		deep = append(deep, member{name: name + "/x/y/file"})
	}
	if err := count(60, deep...); err == nil || !strings.Contains(err.Error(), "directories") {
		t.Errorf("61 directories: %v", err)
	}
	if err := count(61, deep...); err != nil {
		t.Errorf("61 directories: %v", err)
	}
}

// A long name of many directories takes as long for each of them.
func TestLongNames(t *testing.T) {
	named := func(length int) io.Reader {
		return stream(t, member{name: "r" + strings.Repeat("/d", length/2), kind: tar.TypeDir})
	}
	if _, _, err := unpack(t, "r", named(200<<10), archive.Limits{Bytes: 1 << 20, Members: 1 << 20}); err == nil || !strings.Contains(err.Error(), "a name has") {
		t.Errorf("a name of 200 KiB: %v", err)
	}
	if _, _, err := unpack(t, "r", named(2000), archive.Limits{Bytes: 1 << 20, Members: 1 << 20}); err != nil {
		t.Errorf("a name of 2,000 characters: %v", err)
	}
}

// endless repeats some bytes for ever, and counts what is read of them.
type endless struct {
	bytes []byte
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.bytes[e.read%len(e.bytes):])
	e.read += n
	return n, nil
}

// Headers without a member, and members that are left out, end with the limits.
func TestEndlessStreams(t *testing.T) {
	for name, kind := range map[string]byte{"headers of the next member": tar.TypeXHeader, "an unknown kind": '7'} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		header := &tar.Header{Name: "r/a", Typeflag: kind, Size: 512}
		if kind == tar.TypeXHeader {
			header = &tar.Header{Name: "r/" + strings.Repeat("x", 300), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		content := b.Bytes()
		if kind == tar.TypeXHeader {
			content = content[:len(content)-512] // without the member
		} else {
			content = append(content, make([]byte, 512)...)
		}
		from := &endless{bytes: content}
		_, _, err := unpack(t, "r", from, archive.Limits{Bytes: 1 << 10, Members: 10})
		if err == nil || from.read > 1<<20 {
			t.Errorf("%s: %d bytes are read: %v", name, from.read, err)
		}
	}
}

func FuzzCost(f *testing.F) {
	for _, kind := range []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		_ = out.WriteHeader(&tar.Header{Name: "r/" + strings.Repeat("x", 300), Typeflag: kind, Format: tar.FormatPAX})
		f.Add("", b.String(), "")
		f.Add("", b.String()[:b.Len()-512], "")
	}
	dir := f.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	costtest.Check(f, 64<<10, 100, func(text string) {
		_, _ = archive.Unpack(strings.NewReader(text), archive.Target{Root: root, From: "r", To: "copy"}, plenty)
	})
}
