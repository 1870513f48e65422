package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Pack writes a file or directory as a tar stream, under the name. Symbolic links stay links; what
// is no file, directory or link is skipped. Owners aren't told.
func Pack(to io.Writer, source, name string) (Result, error) {
	out := tar.NewWriter(to)
	var done Result
	err := filepath.WalkDir(source, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		return pack(out, file, path.Join(name, filepath.ToSlash(below)), &done)
	})
	if err != nil {
		return done, err
	}
	return done, out.Close()
}

// pack writes one file, directory or link.
func pack(out *tar.Writer, file, name string, done *Result) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	switch mode := info.Mode(); {
	case mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return out.WriteHeader(header)
	case mode&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
		return out.WriteHeader(header)
	case mode.IsRegular():
		done.Files++
		return packFile(out, file, header, done)
	default:
		if len(done.Skipped) < maxSkipped {
			done.Skipped = append(done.Skipped, file)
		}
		return nil
	}
}

// packFile writes a file as long as it is when it's opened: it may grow meanwhile.
func packFile(out *tar.Writer, file string, header *tar.Header, done *Result) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.CopyN(out, in, header.Size)
	done.Bytes += n
	if err != nil {
		return fmt.Errorf("%s: it has changed while it was read: %w", file, err)
	}
	return nil
}
