package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"
)

var (
	program = File{Name: "program", Mode: 0o755, Data: []byte("runs")}
	licence = File{Name: "LICENSE", Mode: 0o644, Data: []byte("may be used")}
	// commit is a time with all that must not get into an archive: a zone, and a part of a second.
	commit = time.Date(2026, 3, 1, 23, 30, 7, 5e8, time.FixedZone("east", 9*3600))
)

var writers = map[string]func([]File, time.Time) ([]byte, error){
	"tar": func(files []File, modified time.Time) ([]byte, error) {
		var out bytes.Buffer
		err := Tar(&out, files, modified)
		return out.Bytes(), err
	},
	"tar.gz": TarGzip,
	"zip":    Zip,
}

// The same files make the same bytes, in whatever order they come and whatever zone the time has.
func TestSameFilesMakeTheSameBytes(t *testing.T) {
	for name, write := range writers {
		first, err := write([]File{program, licence}, commit)
		if err != nil {
			t.Fatal(err)
		}
		second, err := write([]File{licence, program}, commit.UTC())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: the bytes differ", name)
		}
		other, err := write([]File{{Name: "LICENSE", Mode: 0o755, Data: licence.Data}, program}, commit)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(first, other) {
			t.Errorf("%s: the mode isn't in it", name)
		}
	}
}

func TestTwoFilesOfOneName(t *testing.T) {
	for name, write := range writers {
		if _, err := write([]File{program, licence, program}, commit); err == nil || !strings.Contains(err.Error(), "two files program") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTarGzip(t *testing.T) {
	out, err := TarGzip([]File{program, licence}, commit)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if !compressed.ModTime.IsZero() || compressed.Name != "" {
		t.Errorf("the header of gzip has %v %q", compressed.ModTime, compressed.Name)
	}
	files := tar.NewReader(compressed)
	for _, want := range []File{licence, program} {
		header, err := files.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != want.Name || fs.FileMode(header.Mode) != want.Mode || string(data) != string(want.Data) {
			t.Errorf("%s %o %q, want %v", header.Name, header.Mode, data, want)
		}
		if !header.ModTime.Equal(commit.Truncate(time.Second)) || header.Uid+header.Gid != 0 || header.Uname+header.Gname != "" {
			t.Errorf("%s: %v %d:%d %q:%q", header.Name, header.ModTime, header.Uid, header.Gid, header.Uname, header.Gname)
		}
	}
	if _, err := files.Next(); err != io.EOF {
		t.Errorf("after the files: %v", err)
	}
}

func TestZip(t *testing.T) {
	out, err := Zip([]File{program, licence}, commit)
	if err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(out), int64(len(out)))
	if err != nil {
		t.Fatal(err)
	}
	if len(files.File) != 2 {
		t.Fatalf("%d files", len(files.File))
	}
	for i, want := range []File{licence, program} {
		file := files.File[i]
		data, err := fs.ReadFile(files, file.Name)
		if err != nil {
			t.Fatal(err)
		}
		if file.Name != want.Name || file.Mode() != want.Mode || string(data) != string(want.Data) || !file.Modified.Equal(commit.Truncate(time.Second)) {
			t.Errorf("%s %o %v %q, want %v", file.Name, file.Mode(), file.Modified, data, want)
		}
	}
}
