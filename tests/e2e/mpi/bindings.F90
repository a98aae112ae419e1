! SPDX-License-Identifier: Apache-2.0
! bindings.F90 - MPI as Fortran programs call it, by one of three bindings: BINDING_MPIF_H,
! BINDING_MPI, BINDING_F08. usage: bindings FOLDER, on 4 ranks; writes FOLDER/out.RANK, what came of
! each call, and FOLDER/calls.RANK, how often it called what. TOLD is the name of its module: one
! for each build of this file.

#if defined(BINDING_F08)
#define USE_MPI use mpi_f08
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define REQUEST type(MPI_Request)
#define MESSAGE type(MPI_Message)
#define OPERATION type(MPI_Op)
#define WINDOW type(MPI_Win)
#define FILE_HANDLE type(MPI_File)
#define STATUS type(MPI_Status)
#define STATUSES(n) type(MPI_Status), dimension(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#define INCLUDE_MPI
#else
#define COMM integer
#define DATATYPE integer
#define REQUEST integer
#define MESSAGE integer
#define OPERATION integer
#define WINDOW integer
#define FILE_HANDLE integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(n) integer, dimension(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#if defined(BINDING_MPI)
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#endif
#endif

! What was called, and what came of it.
module TOLD
    implicit none
    integer, parameter :: ranks = 4
    integer :: rank = -1, kinds = 0, faults = 0, times(100)
    character(40) :: names(100)
    character(4000) :: folder
contains
    subroutine counted(name)
        character(*), intent(in) :: name
        integer :: i
        do i = 1, kinds
            if (names(i) == name) then
                times(i) = times(i) + 1
                return
            end if
        end do
        kinds = kinds + 1
        names(kinds) = name
        times(kinds) = 1
    end subroutine

    subroutine check(what, got, expected)
        character(*), intent(in) :: what
        integer, intent(in) :: got, expected
        write (10, '(a,1x,i0)') what, got
        if (got == expected) return
        write (0, '(a,i0,1x,a,a,i0,a,i0)') 'rank ', rank, what, ' is ', got, ', not ', expected
        faults = faults + 1
    end subroutine

    integer function element(r, i)
        integer, intent(in) :: r, i
        element = 1000 * (r + 1) + 7 * i
    end function

    integer function right()
        right = mod(rank + 1, ranks)
    end function

    integer function left()
        left = mod(rank + ranks - 1, ranks)
    end function

    subroutine open_out()
        character(4100) :: path
        write (path, '(a,a,i0)') trim(folder), '/out.', rank
        open (10, file=path, status='replace', action='write')
    end subroutine

    subroutine write_calls()
        character(4100) :: path
        integer :: i
        write (path, '(a,a,i0)') trim(folder), '/calls.', rank
        open (11, file=path, status='replace', action='write')
        do i = 1, kinds
            write (11, '(a,1x,i0)') trim(names(i)), times(i)
        end do
        close (11)
    end subroutine
end module

! A reduction of the program's own.
subroutine add(in, inout, n, type)
    USE_MPI
    implicit none
    integer :: n
    integer :: in(n), inout(n)
    DATATYPE :: type
    inout = inout + in
end subroutine

subroutine collectives()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    external :: add
    integer :: e, v(4), got(16), r, counts(4), places(4)
    REQUEST :: q
    OPERATION :: op

    v = [element(rank, 1), element(rank, 2), element(rank, 3), element(rank, 4)]
    call counted('MPI_Barrier')
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call counted('MPI_Allreduce')
    call MPI_Allreduce(v, got, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
    call check('allreduce', got(4), element(0, 4) + element(1, 4) + element(2, 4) + element(3, 4))
    got(1:4) = v
    call counted('MPI_Allreduce')
    call MPI_Allreduce(MPI_IN_PLACE, got, 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, e)
    call check('allreduce in place', got(2), element(3, 2))
    call MPI_Op_create(add, .true., op, e)
    call counted('MPI_Allreduce')
    call MPI_Allreduce(v, got, 1, MPI_INTEGER, op, MPI_COMM_WORLD, e)
    call check('allreduce by add', got(1), element(0, 1) + element(1, 1) + element(2, 1) + element(3, 1))
    call counted('MPI_Op_free')
    call MPI_Op_free(op, e)
    if (rank == 2) got(1:4) = v
    call counted('MPI_Bcast')
    call MPI_Bcast(got, 4, MPI_INTEGER, 2, MPI_COMM_WORLD, e)
    call check('bcast', got(3), element(2, 3))
    got = 0
    got(rank + 1) = v(1)
    call counted('MPI_Allgather')
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, MPI_INTEGER, MPI_COMM_WORLD, e)
    call check('allgather in place', got(4), element(3, 1))
    if (rank == 1) then
        got(1:4) = 0
        got(2) = v(2)
        call counted('MPI_Gather')
        call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, e)
        call check('gather in place', got(4), element(3, 2))
    else
        call counted('MPI_Gather')
        call MPI_Gather(v(2), 1, MPI_INTEGER, got, 0, MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD, e)
    end if
    counts = 1
    places = [(r, r=0, 3)]
    call counted('MPI_Alltoallv')
    call MPI_Alltoallv(v, counts, places, MPI_INTEGER, got, counts, places, MPI_INTEGER, &
        MPI_COMM_WORLD, e)
    call check('alltoallv', got(3), element(2, rank + 1))
    call counted('MPI_Reduce_scatter')
    call MPI_Reduce_scatter(v, got, counts, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, e)
    call check('reduce_scatter', got(1), element(0, rank + 1))
    call counted('MPI_Iallreduce')
    call MPI_Iallreduce(v, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, q, e)
    call counted('MPI_Wait')
    call MPI_Wait(q, MPI_STATUS_IGNORE, e)
    call check('iallreduce', got(1), element(0, 1) + element(1, 1) + element(2, 1) + element(3, 1))
end subroutine

subroutine messages()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e, v(4), got(4), i, n, indices(4), done
    logical :: flag
    REQUEST :: q(4)
    MESSAGE :: m
    STATUS :: s
    STATUSES(4) :: all

    v = [(element(rank, i), i=1, 4)]
    got = 0
    call counted('MPI_Sendrecv')
    call MPI_Sendrecv(v, 2, MPI_INTEGER, right(), 1, got, 4, MPI_INTEGER, MPI_ANY_SOURCE, 1, &
        MPI_COMM_WORLD, s, e)
    call check('sendrecv', got(2), element(left(), 2))
    call check('source', SOURCE_OF(s), left())
    call check('tag', TAG_OF(s), 1)
    call MPI_Get_count(s, MPI_INTEGER, n, e)
    call check('count', n, 2)
    call counted('MPI_Isend')
    call MPI_Isend(v, 1, MPI_INTEGER, right(), 2, MPI_COMM_WORLD, q(1), e)
    call counted('MPI_Recv')
    call MPI_Recv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call check('recv from any', got(1), element(left(), 1))
    call counted('MPI_Wait')
    call MPI_Wait(q(1), s, e)
    call counted('MPI_Recv')
    call MPI_Recv(got, 1, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, s, e)
    call check('recv from null', SOURCE_OF(s), MPI_PROC_NULL)

    do i = 1, 2
        call counted('MPI_Irecv')
        call MPI_Irecv(got(i), 1, MPI_INTEGER, left(), 10 + i, MPI_COMM_WORLD, q(i), e)
        call counted('MPI_Isend')
        call MPI_Isend(v(i), 1, MPI_INTEGER, right(), 10 + i, MPI_COMM_WORLD, q(2 + i), e)
    end do
    call counted('MPI_Waitall')
    call MPI_Waitall(4, q, MPI_STATUSES_IGNORE, e)
    call check('waitall', got(2), element(left(), 2))
    do i = 1, 2
        call counted('MPI_Irecv')
        call MPI_Irecv(got(i), 1, MPI_INTEGER, left(), 20 + i, MPI_COMM_WORLD, q(i), e)
        call counted('MPI_Isend')
        call MPI_Isend(v(i + 2), 1, MPI_INTEGER, right(), 20 + i, MPI_COMM_WORLD, q(2 + i), e)
    end do
    call counted('MPI_Waitany')
    call MPI_Waitany(4, q, i, s, e)
    call check('index', merge(1, 0, i >= 0 .and. i <= 4), 1) ! MPICH 4.0's mpi_f08 counts from 0
    done = 1
    do while (done < 4)
        call counted('MPI_Waitsome')
        call MPI_Waitsome(4, q, n, indices, all, e)
        done = done + n
    end do
    call check('waitsome', got(2), element(left(), 4))
    call counted('MPI_Waitsome')
    call MPI_Waitsome(4, q, n, indices, MPI_STATUSES_IGNORE, e)
    call check('waitsome of null', n, MPI_UNDEFINED)

    call counted('MPI_Isend')
    call MPI_Isend(v, 3, MPI_INTEGER, right(), 30, MPI_COMM_WORLD, q(1), e)
    call counted('MPI_Mprobe')
    call MPI_Mprobe(left(), 30, MPI_COMM_WORLD, m, MPI_STATUS_IGNORE, e)
    call counted('MPI_Mrecv')
    call MPI_Mrecv(got, 3, MPI_INTEGER, m, MPI_STATUS_IGNORE, e)
    call check('mrecv', got(3), element(left(), 3))
    flag = .false.
    do while (.not. flag)
        call counted('MPI_Test')
        call MPI_Test(q(1), flag, MPI_STATUS_IGNORE, e)
    end do

    call counted('MPI_Recv_init')
    call MPI_Recv_init(got, 1, MPI_INTEGER, left(), 40, MPI_COMM_WORLD, q(1), e)
    call counted('MPI_Send_init')
    call MPI_Send_init(v(3), 1, MPI_INTEGER, right(), 40, MPI_COMM_WORLD, q(2), e)
    call counted('MPI_Start')
    call MPI_Start(q(1), e)
    call counted('MPI_Startall')
    call MPI_Startall(1, q(2:2), e)
    call counted('MPI_Waitall')
    call MPI_Waitall(2, q(1:2), MPI_STATUSES_IGNORE, e)
    call check('persistent', got(1), element(left(), 3))
    do i = 1, 2
        call counted('MPI_Request_free')
        call MPI_Request_free(q(i), e)
    end do
end subroutine

! A type whose place is an address: MPI_BOTTOM must come through.
subroutine bottom()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e, v, got, lengths(1)
    integer(MPI_ADDRESS_KIND) :: at(1)
    DATATYPE :: out, back
    volatile :: v, got

    v = element(rank, 5)
    got = 0
    lengths = 1
    call MPI_Get_address(v, at(1), e)
    call MPI_Type_create_hindexed(1, lengths, at, MPI_INTEGER, out, e)
    call MPI_Type_commit(out, e)
    call MPI_Get_address(got, at(1), e)
    call MPI_Type_create_hindexed(1, lengths, at, MPI_INTEGER, back, e)
    call MPI_Type_commit(back, e)
    call counted('MPI_Sendrecv')
    call MPI_Sendrecv(MPI_BOTTOM, 1, out, right(), 50, MPI_BOTTOM, 1, back, left(), 50, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call check('bottom', got, element(left(), 5))
    call counted('MPI_Type_free')
    call MPI_Type_free(out, e)
    call counted('MPI_Type_free')
    call MPI_Type_free(back, e)
end subroutine

! Every other element: mpi_f08 hands over a descriptor, the others a copy.
subroutine sections()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e, v(8), got(8), i

    v = [(element(rank, i), i=1, 8)]
    got = 0
    call counted('MPI_Sendrecv')
    call MPI_Sendrecv(v(1:7:2), 4, MPI_INTEGER, right(), 60, got(1:7:2), 4, MPI_INTEGER, left(), 60, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call check('section', got(7), element(left(), 7))
    call check('between', got(6), 0)
    call counted('MPI_Bcast')
    call MPI_Bcast(v(2:8:2), 4, MPI_INTEGER, 3, MPI_COMM_WORLD, e)
    call check('bcast of a section', v(8), element(3, 8))
end subroutine

subroutine communicators()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e, v, got, from(1), to(1)
    COMM :: half, ring, copy

    v = element(rank, 6)
    call counted('MPI_Comm_split')
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, e)
    call counted('MPI_Comm_set_name')
    call MPI_Comm_set_name(half, 'half', e)
    call counted('MPI_Allreduce')
    call MPI_Allreduce(v, got, 1, MPI_INTEGER, MPI_MAX, half, e)
    call check('half', got, element(2 + mod(rank, 2), 6))
    call counted('MPI_Comm_free')
    call MPI_Comm_free(half, e)
    from = left()
    to = right()
    call counted('MPI_Dist_graph_create_adjacent')
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, from, MPI_UNWEIGHTED, 1, to, &
        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, e)
    call counted('MPI_Neighbor_allgather')
    call MPI_Neighbor_allgather(v, 1, MPI_INTEGER, got, 1, MPI_INTEGER, ring, e)
    call check('neighbour', got, element(left(), 6))
    call counted('MPI_Comm_dup')
    call MPI_Comm_dup(ring, copy, e)
    call counted('MPI_Barrier')
    call MPI_Barrier(copy, e)
    call counted('MPI_Comm_free')
    call MPI_Comm_free(copy, e)
    call counted('MPI_Comm_free')
    call MPI_Comm_free(ring, e)
end subroutine

subroutine windows()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer, save :: mem(4)
    integer :: e, v, got
    integer(MPI_ADDRESS_KIND) :: at, bytes
    WINDOW :: win

    mem = 0
    v = element(rank, 7)
    bytes = 16
    at = 2
    call counted('MPI_Win_create')
    call MPI_Win_create(mem, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, e)
    call counted('MPI_Win_fence')
    call MPI_Win_fence(0, win, e)
    call counted('MPI_Put')
    call MPI_Put(v, 1, MPI_INTEGER, right(), at, 1, MPI_INTEGER, win, e)
    call counted('MPI_Win_fence')
    call MPI_Win_fence(0, win, e)
    call check('put', mem(3), element(left(), 7))
    call counted('MPI_Win_lock')
    call MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win, e)
    call counted('MPI_Get')
    call MPI_Get(got, 1, MPI_INTEGER, right(), at, 1, MPI_INTEGER, win, e)
    call counted('MPI_Win_unlock')
    call MPI_Win_unlock(right(), win, e)
    call check('get', got, v)
    call counted('MPI_Win_free')
    call MPI_Win_free(win, e)
end subroutine

subroutine files()
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e, v(2), got(2), n
    integer(MPI_OFFSET_KIND) :: at
    FILE_HANDLE :: f
    STATUS :: s

    v = [element(rank, 8), element(rank, 9)]
    at = 8 * rank
    call counted('MPI_File_open')
    call MPI_File_open(MPI_COMM_WORLD, trim(folder) // '/data', &
        ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, f, e)
    call check('open', e, MPI_SUCCESS)
    call counted('MPI_File_write_at_all')
    call MPI_File_write_at_all(f, at, v, 2, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call counted('MPI_File_sync')
    call MPI_File_sync(f, e)
    call counted('MPI_Barrier')
    call MPI_Barrier(MPI_COMM_WORLD, e)
    at = 8 * right()
    call counted('MPI_File_read_at')
    call MPI_File_read_at(f, at, got, 2, MPI_INTEGER, s, e)
    call check('read', got(2), element(right(), 9))
    call MPI_Get_count(s, MPI_INTEGER, n, e)
    call check('read elements', n, 2)
    call counted('MPI_File_close')
    call MPI_File_close(f, e)
end subroutine

program bindings
    use TOLD
    USE_MPI
    implicit none
    INCLUDE_MPI
    integer :: e
    logical :: begun

    call get_command_argument(1, folder)
    call MPI_Initialized(begun, e)
    call counted('MPI_Init')
    call MPI_Init(e)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
    call open_out()
    call collectives()
    call messages()
    call bottom()
    call sections()
    call communicators()
    call windows()
    call files()
    call counted('MPI_Finalize')
    call MPI_Finalize(e)
    close (10)
    call write_calls()
    if (faults /= 0) error stop 1
end program
