/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The choice of functions that may yield, and their twins: copies that call twins, and have markers where they yield.
 *
 * A function may yield if it has a loop, calls itself, however indirectly, or makes a call that may yield: of a
 * function of this file that may yield, of a function of another file, or by a pointer. Code in no_yield does not
 * count. Functions of libc do not yield, except functions that wait, whose twins are in the runtime. A function that
 * never yields needs no twin.
 *
 *   call of                      in a twin becomes a call of
 *   a function of this file      its twin
 *   a linker-chosen function     the twin that stands in front of the chosen function (names.cpp), else the function
 *   a pointer                    the twin that stands in front of the function, if any, else the function
 *   any other function           the function
 *   weft__activity_park          weft__activity_park_now, which keeps no register: all live values are in the frame,
 *                                which is copied
 */
#include "pass.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include <cstdlib>
#include <map>
#include <set>

using namespace llvm;

namespace weft
{
namespace
{
/* Functions of libc that wait in a way that parks: libweft-activity has their twins. */
const StringSet<> Waits = {
#define WEFT__CALL_PARKS(name, how) #name,
#define WEFT__CALL_BLOCKS(name, why)
#include "activity/libc_calls.def"
#undef WEFT__CALL_PARKS
#undef WEFT__CALL_BLOCKS
};
/* Functions of libc that call the system, which takes longer than the look-up of a program's own function of that
 * name. */
const StringSet<> OfSystem = {"access", "chmod", "chown",   "closedir", "fstat", "fstatvfs", "kill",	 "lchown",
			      "lstat",	"mkdir", "opendir", "pclose",	"popen", "readlink", "realpath", "rename",
			      "rmdir",	"stat",	 "statvfs", "system",	"times", "unlink",   "utime",	 "utimes"};

/*
 * C++ calls these around the first initialization of a function's static variable, which counts as no_yield: another
 * activity of the thread must not find it half done. The first function returns 0 if the variable is initialized.
 */
constexpr char GuardAcquire[] = "__cxa_guard_acquire";
constexpr char GuardRelease[] = "__cxa_guard_release";
constexpr char GuardAbort[] = "__cxa_guard_abort";

/* The number of enclosing no_yield and no_implicit_yield blocks. */
struct Depth {
	int NoYield = 0, NoImplicit = 0;

	bool step(const Instruction &I)
	{
		if (calls(I, NoYieldBegin))
			return NoYield++, true;
		if (calls(I, NoYieldEnd) || calls(I, GuardRelease) || calls(I, GuardAbort))
			return NoYield--, true;
		if (calls(I, NoImplicitBegin))
			return NoImplicit++, true;
		if (calls(I, NoImplicitEnd))
			return NoImplicit--, true;
		return false;
	}
};

/* The calls of a function that may yield, and its back-edges. */
struct Points {
	std::vector<CallBase *> Calls, Parks, Yields, GiveWays;
	std::vector<CallBase *> Around; /* calls before and after which it yields */
	std::vector<CallBase *> Atomic; /* explicit yields in no_yield */
	std::vector<std::pair<BasicBlock *, BasicBlock *>> BackEdges;

	bool yieldsItself() const
	{
		return !Parks.empty() || !Yields.empty() || !GiveWays.empty();
	}
};

class TwinMaker
{
      public:
	TwinMaker(Module &M, FunctionAnalysisManager &FAM)
	    : M(M), C(M.getContext()), FAM(FAM), P(PointerType::get(C, 0))
	{
	}
	bool run();

      private:
	Module &M;
	LLVMContext &C;
	FunctionAnalysisManager &FAM;
	PointerType *P;
	std::map<Function *, unsigned> Says;
	/* In the module's order, so that the same source gives the same object. */
	MapVector<Function *, Points> Of; /* for each function that may have a twin */
	MapVector<Function *, Function *> Twin;
	SetVector<Function *> MayYield;

	void readAnnotations();
	void spawn(Body &B);
	Function *enter(Function *B);
	bool mayHaveTwin(Function &F);
	bool isPlain(Value &Callee);
	bool isCall(CallBase &Call);
	Points points(Function &F);
	bool recursive(Function *F);
	void spread();
	void whoMayYield();
	std::string why(Function *F);
	void report(const char *Path);
	void clone(Function &F);
	bool keepsLabels(Function &F);
	bool cloneTables(Function &F, ValueToValueMapTy &Map,
			 std::vector<std::pair<GlobalVariable *, GlobalVariable *>> &Tables);
	void fill(Function &F);
	Function *ours(const CallBase *Call);
	void call(CallBase *Call);
	void byPointer(CallBase *Call);
	void forget(CallBase *Call);
	bool announce(Function &F);
	void callsKeepNothing(std::vector<CallBase *> &Calls, StringRef Name);
	CallInst *mark(StringRef Name, BasicBlock::iterator Before);
	void around(CallBase *Call);
	void dropMarkers();
	void needVersion();
};

void TwinMaker::readAnnotations()
{
	auto *List = M.getGlobalVariable("llvm.global.annotations");
	auto *Array = List && List->hasInitializer() ? dyn_cast<ConstantArray>(List->getInitializer()) : nullptr;

	if (!Array)
		return;
	for (Use &Entry : Array->operands()) {
		auto *Fields = dyn_cast<ConstantStruct>(Entry);
		auto *F = Fields ? dyn_cast<Function>(Fields->getOperand(0)->stripPointerCasts()) : nullptr;
		auto *Text = Fields ? dyn_cast<GlobalVariable>(Fields->getOperand(1)->stripPointerCasts()) : nullptr;
		auto *Bytes = Text ? dyn_cast<ConstantDataArray>(Text->getInitializer()) : nullptr;

		if (!F || !Bytes || !Bytes->isCString())
			continue;
		if (Bytes->getAsCString() == "weft.no_yield")
			Says[F] |= SaysNoYield;
		if (Bytes->getAsCString() == "weft.no_implicit_yield")
			Says[F] |= SaysNoImplicit;
	}
}

/* weft__activity_spawn gets six words, which become B's arguments. If there are more arguments, or arguments other
 * than integers and pointers, a function that takes them out of a block calls B. */
void TwinMaker::spawn(Body &B)
{
	Type *I64 = Type::getInt64Ty(C);
	IRBuilder<> IR(B.Spawn);
	std::vector<Value *> Arguments(B.Spawn->arg_begin(), B.Spawn->arg_end()), Words;
	bool Boxed = Arguments.size() > 6;
	Function *Entry = B.F;

	for (Value *V : Arguments)
		Boxed |= !V->getType()->isPointerTy() && !V->getType()->isIntegerTy(32) &&
			 !V->getType()->isIntegerTy(64); /* preserve_none passes narrower integers elsewhere */
	if (Boxed) {
		Entry = enter(B.F);
		auto *Box = IR.CreateCall(runtime(M, Block, P, {I64}), {IR.getInt64(16 * Arguments.size())});
		for (size_t I = 0; I < Arguments.size(); I++)
			IR.CreateAlignedStore(Arguments[I], IR.CreateConstGEP1_64(I64, Box, 2 * I), Align(8));
		Words.push_back(IR.CreatePtrToInt(Box, I64));
	} else
		for (Value *V : Arguments)
			Words.push_back(V->getType()->isPointerTy() ? IR.CreatePtrToInt(V, I64)
								    : IR.CreateZExt(V, I64));
	Words.resize(6, IR.getInt64(0));
	/* No code needs the register contents from before an activity, so the activity saves none of them in its
	 * frame. */
	Entry->setCallingConv(CallingConv::PreserveNone);
	std::vector<Value *> Operands{B.Handle, Entry};
	Operands.insert(Operands.end(), Words.begin(), Words.end());
	IR.CreateCall(runtime(M, Spawn, Type::getVoidTy(C), {P, P, I64, I64, I64, I64, I64, I64}), Operands);
	B.Spawn->eraseFromParent();
}

Function *TwinMaker::enter(Function *B)
{
	Type *I64 = Type::getInt64Ty(C);
	auto *F = Function::Create(FunctionType::get(Type::getVoidTy(C), {P}, false), GlobalValue::InternalLinkage,
				   B->getName() + ".enter", &M);
	IRBuilder<> IR(BasicBlock::Create(C, "", F));
	std::vector<Value *> Arguments;

	F->copyAttributesFrom(B);
	F->setAttributes(AttributeList::get(C, B->getAttributes().getFnAttrs(), {}, {}));
	for (size_t I = 0; I < B->arg_size(); I++)
		Arguments.push_back(IR.CreateAlignedLoad(B->getArg(I)->getType(),
							 IR.CreateConstGEP1_64(I64, F->getArg(0), 2 * I), Align(8)));
	IR.CreateCall(runtime(M, Unblock, Type::getVoidTy(C), {P}), {F->getArg(0)});
	auto *Call = IR.CreateCall(B, Arguments);
	if (auto *S = B->getSubprogram())
		Call->setDebugLoc(DILocation::get(C, S->getLine(), 0, S));
	IR.CreateRetVoid();
	return F;
}

/*
 * Functions that clang itself makes for C++: they initialize variables of files before main, and variables of threads
 * at their first use (_ZTH, _ZTW), where another activity of the thread must not find them half done.
 */
static bool initializes(Function &F)
{
	StringRef Name = F.getName();

	return any_of(ArrayRef<StringRef>{"__cxx_global_", "_GLOBAL__", "__tls_init", "_ZTH", "_ZTW"},
		      [&](StringRef Start) { return Name.starts_with(Start); });
}

/* Functions of Weft's headers. They search handlers, and enter queues, on behalf of one activity. */
static bool isOurs(StringRef Name)
{
	return Name.contains("weft__") && !Name.contains("weft__first_activity");
}

bool TwinMaker::mayHaveTwin(Function &F)
{
	return !initializes(F) && !isOurs(F.getName()) && !F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
	       !(Says[&F] & SaysNoYield) && !F.hasFnAttribute(Attribute::Naked);
}

/*
 * Is it certain that the callee has no twin? A function with the name of a libc function, and parameters of its own, is
 * the program's.
 */
bool TwinMaker::isPlain(Value &Callee)
{
	LibFunc Known;

	if (isa<GlobalIFunc>(Callee))
		return !mayPointToIFuncs(M);
	if (!isa<Function>(Callee))
		return false;
	auto &F = cast<Function>(Callee);
	StringRef Name = F.getName();
	if (F.isIntrinsic() || initializes(F) || isOurs(Name) || Says[&F] & SaysNoYield ||
	    F.hasFnAttribute(Attribute::ReturnsTwice))
		return true;
	/* The compiler may look into such a body, but the function is elsewhere: headers of libc have them, for
	 * example atol. */
	if (!F.isDeclaration() && !F.hasAvailableExternallyLinkage())
		return false;
	/* Such a function need not exist elsewhere. */
	if (F.hasFnAttribute(Attribute::AlwaysInline))
		return true;
	if (Name.starts_with("weft_"))
		return true;
	if (F.hasFnAttribute("llvm.assume") &&
	    F.getFnAttribute("llvm.assume").getValueAsString().contains("weft_plain"))
		return true;
	if (Waits.contains(Name) || OfSystem.contains(Name) || Name.starts_with("__wrap_") ||
	    Name.starts_with("__real_"))
		return false;
	return FAM.getResult<TargetLibraryAnalysis>(F).getLibFunc(F, Known) || Name.starts_with("__");
}

/* The function of this file that a call by name runs. Null: a pointer, or a name for which the linker chooses. */
Function *TwinMaker::ours(const CallBase *Call)
{
	auto *V = dyn_cast<GlobalValue>(Call->getCalledOperand());

	while (auto *A = dyn_cast_or_null<GlobalAlias>(V))
		V = A->isInterposable() ? nullptr : dyn_cast<GlobalValue>(A->getAliasee());
	auto *F = dyn_cast_or_null<Function>(V);
	return F && Of.count(F) && !F->isInterposable() ? F : nullptr;
}

/* Intrinsics that take as long as a call: functions of libm, and moves of many bytes or of an unknown number. */
static bool takesLong(const IntrinsicInst &I)
{
	switch (I.getIntrinsicID()) {
	case Intrinsic::sin:
	case Intrinsic::cos:
	case Intrinsic::exp:
	case Intrinsic::exp2:
	case Intrinsic::log:
	case Intrinsic::log2:
	case Intrinsic::log10:
	case Intrinsic::pow:
		return true;
	default:
		return isLong(I);
	}
}

/*
 * Does it yield before and after this call? Not if the call belongs to a statement's implementation: functions of the
 * compiler and of Weft, recognised by their names, and functions that are always inlined.
 */
bool TwinMaker::isCall(CallBase &Call)
{
	Function *Callee = Call.getCalledFunction();
	StringRef Name = Callee ? Callee->getName() : "";

	if (inserted() == Inserted::Loops || isa<CallBrInst>(Call))
		return false;
	if (auto *I = dyn_cast<IntrinsicInst>(&Call))
		return takesLong(*I);
	if (Callee && (Callee->hasFnAttribute(Attribute::AlwaysInline) || initializes(*Callee)))
		return false;
	/* The functions by which fortified and newer standard headers replace the functions that a program calls. */
	if (Name.ends_with("_chk") || Name.starts_with("__isoc"))
		return true;
	return !Name.starts_with("__") && !Name.starts_with("weft_") && !Name.starts_with("_Unwind_") && !isOurs(Name);
}

Points TwinMaker::points(Function &F)
{
	SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 8> Edges;
	std::map<const BasicBlock *, SmallSetVector<const BasicBlock *, 2>> Backward;
	std::map<BasicBlock *, Depth> Before;
	std::vector<BasicBlock *> Work{&F.getEntryBlock()};
	Points Result;

	FindFunctionBackedges(F, Edges);
	for (auto &E : Edges)
		Backward[E.first].insert(E.second);
	Before[Work[0]].NoImplicit = !!(Says[&F] & SaysNoImplicit);
	while (!Work.empty()) {
		BasicBlock *B = Work.back();
		Depth D = Before[B];
		bool Guards = false;

		Work.pop_back();
		for (Instruction &I : *B) {
			auto *Call = dyn_cast<CallBase>(&I);

			Guards |= calls(I, GuardAcquire);
			if (D.step(I) || !Call || Call->isInlineAsm())
				continue;
			if (!D.NoYield && !D.NoImplicit && isCall(*Call))
				Result.Around.push_back(Call);
			if (isa<IntrinsicInst>(I))
				continue;
			if (calls(I, Yield) || calls(I, GiveWay))
				(D.NoYield	   ? Result.Atomic
				 : calls(I, Yield) ? Result.Yields
						   : Result.GiveWays)
				    .push_back(Call);
#ifndef WEFT_CANARY_no_yield_yields
			else if (D.NoYield)
				continue;
#endif
			else if (calls(I, Park))
				Result.Parks.push_back(Call);
			else if (!isPlain(*Call->getCalledOperand()))
				Result.Calls.push_back(Call);
		}
		if (!D.NoYield && !D.NoImplicit)
			for (const BasicBlock *To : Backward[B])
				Result.BackEdges.push_back({B, const_cast<BasicBlock *>(To)});
		for (BasicBlock *S : successors(B)) {
			Depth There = D;

			There.NoYield += Guards && S == *succ_begin(B);
			if (Before.emplace(S, There).second)
				Work.push_back(S);
		}
	}
	return Result;
}

/* Recursion is a loop, too, and needs the check at the entry, which finds the stack nearly full. */
bool TwinMaker::recursive(Function *F)
{
	std::vector<Function *> Work{F};
	std::set<Function *> Seen;

	while (!Work.empty()) {
		Function *Caller = Work.back();

		Work.pop_back();
		for (CallBase *Call : Of[Caller].Calls) {
			Function *Callee = ours(Call);

			if (Callee == F)
				return true;
			if (Callee && Seen.insert(Callee).second)
				Work.push_back(Callee);
		}
	}
	return false;
}

/* Adds the functions that call functions that may yield. */
void TwinMaker::spread()
{
	for (bool Changed = true; Changed;) {
		Changed = false;
		for (auto &[F, Where] : Of)
			Changed |= any_of(Where.Calls,
					  [&](CallBase *Call) {
						  Function *Callee = ours(Call);
						  return !Callee || MayYield.count(Callee);
					  }) &&
				   MayYield.insert(F);
	}
}

void TwinMaker::whoMayYield()
{
	for (Function &F : M)
		if (mayHaveTwin(F))
			Of[&F] = points(F);
	for (auto &[F, Where] : Of)
		if (!Where.BackEdges.empty() || !Where.Around.empty() || Where.yieldsItself())
			MayYield.insert(F);
	spread();
	for (auto &[F, Where] : Of)
		if (!MayYield.count(F) && recursive(F))
			MayYield.insert(F);
	spread();
}

/* The reason why F may yield, in the words of `weft cc --activities-report`: a reason that its author can change. */
std::string TwinMaker::why(Function *F)
{
	const Points &Where = Of[F];
	std::string Called;

	if (Where.yieldsItself())
		return "yields or waits by itself";
	if (!Where.BackEdges.empty())
		return "has a loop";
	for (CallBase *Call : Where.Calls) {
		auto *Named = dyn_cast<GlobalValue>(Call->getCalledOperand());
		Function *Callee = ours(Call);

		if (!Named)
			return "calls by a pointer";
		if (!Callee && Waits.contains(Named->getName()))
			return ("calls " + Named->getName() + ", which waits").str();
		if (!Callee)
			return ("calls " + Named->getName() + ", which is in another file").str();
		if (Called.empty() && Callee != F && MayYield.count(Callee))
			Called = Callee->getName();
	}
	if (Called.empty() && !Where.Around.empty() && !recursive(F)) {
		Function *Callee = Where.Around[0]->getCalledFunction();
		return ("calls " + Callee->getName()).str();
	}
	return Called.empty() || recursive(F) ? "calls itself" : "calls " + Called + ", which may yield";
}

/* Writes a line for each twin. Several compilers may write at once: each appends all of its lines by one write. */
void TwinMaker::report(const char *Path)
{
	std::error_code Failed;
	std::string Lines;

	for (Function *F : MayYield)
		Lines += (F->getName() + "\t" + why(F) + "\n").str();
	raw_fd_ostream Out(Path, Failed, sys::fs::OF_Append);
	if (Failed) {
		C.emitError("cannot write the report of activities to " + Twine(Path) + ": " + Failed.message());
		return;
	}
	Out.SetBufferSize(Lines.size() + 1);
	Out << Lines;
}

/* Copies tables of labels, for computed goto: the twin's copy has the twin's labels. */
bool TwinMaker::cloneTables(Function &F, ValueToValueMapTy &Map,
			    std::vector<std::pair<GlobalVariable *, GlobalVariable *>> &Tables)
{
	std::vector<Constant *> Work;
	std::set<GlobalVariable *> Seen;

	for (BasicBlock &B : F)
		if (B.hasAddressTaken())
			Work.push_back(BlockAddress::get(&F, &B));
	while (!Work.empty()) {
		Constant *Used = Work.back();

		Work.pop_back();
		for (User *U : Used->users()) {
			if (auto *G = dyn_cast<GlobalVariable>(U)) {
				if (!G->hasLocalLinkage())
					return false;
				if (!Seen.insert(G).second)
					continue;
				auto *Copy = new GlobalVariable(M, G->getValueType(), G->isConstant(), G->getLinkage(),
								nullptr, G->getName() + Suffix, G);
				Copy->copyAttributesFrom(G);
				Map[G] = Copy;
				Tables.push_back({G, Copy});
			} else if (auto *K = dyn_cast<Constant>(U))
				Work.push_back(K);
		}
	}
	return true;
}

/* The object that a pointer leads into, if there is such an object. */
static Value *objectOf(Value *Pointer)
{
	for (;;) {
		Pointer = Pointer->stripPointerCasts();
		auto *Part = dyn_cast<GetElementPtrInst>(Pointer);
		if (!Part)
			return Pointer;
		Pointer = Part->getPointerOperand();
	}
}

/* Does code of F store a label's address where its twin would find it? The twin has other labels. */
bool TwinMaker::keepsLabels(Function &F)
{
	for (Instruction &I : instructions(F))
		for (Use &U : I.operands())
			if (isa<BlockAddress>(U)) {
				auto *Store = dyn_cast<StoreInst>(&I);

				if (isa<CallBase, ReturnInst>(I) ||
				    (Store && !isa<AllocaInst>(objectOf(Store->getPointerOperand()))))
					return true;
			}
	return false;
}

/*
 * No other file refers to a twin by name: the words in front of F lead to it. Functions with the same definition in
 * many files have one twin, in a group of its own: the linker may take F from a file that was compiled without the
 * pass.
 */
static void place(Function &F, Function &T)
{
	T.setDSOLocal(true);
	T.setComdat(nullptr);
	if (!F.hasComdat() || !alike(F)) {
		T.setVisibility(GlobalValue::DefaultVisibility);
		T.setLinkage(GlobalValue::InternalLinkage);
		return;
	}
	T.setVisibility(GlobalValue::HiddenVisibility);
	T.setComdat(F.getParent()->getOrInsertComdat(T.getName()));
	T.getComdat()->setSelectionKind(F.getComdat()->getSelectionKind());
}

void TwinMaker::clone(Function &F)
{
	ValueToValueMapTy Map;
	SmallVector<ReturnInst *, 8> Returns;
	std::vector<std::pair<GlobalVariable *, GlobalVariable *>> Tables;

	if (keepsLabels(F)) {
		error(F.getEntryBlock().front(), "the address of a label is kept outside of this function's variables: "
						 "jump through a static table of labels, because the yielding "
						 "function has labels of its own");
		return;
	}
	if (!cloneTables(F, Map, Tables)) {
		error(F.getEntryBlock().front(), "a table of labels that other files can see: make it static, so that "
						 "the yielding function has its own");
		return;
	}
	auto *T = Function::Create(F.getFunctionType(), F.getLinkage(), F.getAddressSpace(), F.getName() + Suffix, &M);
	for (size_t I = 0; I < F.arg_size(); I++) {
		T->getArg(I)->setName(F.getArg(I)->getName());
		Map[F.getArg(I)] = T->getArg(I);
	}
	CloneFunctionInto(T, &F, Map, CloneFunctionChangeType::LocalChangesOnly, Returns);
	for (auto &[Old, New] : Tables)
		New->setInitializer(MapValue(Old->getInitializer(), Map));
	T->setCallingConv(F.getCallingConv());
	place(F, *T);
	for (auto K : {Attribute::Memory, Attribute::WillReturn, Attribute::NoRecurse, Attribute::NoSync,
		       Attribute::NoFree, Attribute::Speculatable})
		T->removeFnAttr(K);
	T->addFnAttr(TwinAttribute, inserted() == Inserted::Calls ? YieldsAround : "");
	if (inserted() == Inserted::Calls && !(Says[&F] & SaysNoImplicit) && !F.hasFnAttribute(Attribute::AlwaysInline))
		T->addFnAttr(EntryAttribute);
	Twin[&F] = T;
}

/* Calls through a function of the runtime, which gets the pointer in the register of a nested function's frame, and
 * jumps. */
void TwinMaker::byPointer(CallBase *Call)
{
	std::vector<Value *> Arguments{Call->getCalledOperand()};
	std::vector<Type *> Types{P};
	std::vector<AttributeSet> Parameters{AttributeSet::get(C, {Attribute::get(C, Attribute::Nest)})};
	FunctionType *T = Call->getFunctionType();
	AttributeList As = Call->getAttributes();
	SmallVector<OperandBundleDef, 1> Bundles;
	IRBuilder<> IR(Call);
	CallBase *New;

	for (Use &A : Call->args()) {
		Parameters.push_back(As.getParamAttrs(Call->getArgOperandNo(&A)));
		Arguments.push_back(A);
	}
	Types.insert(Types.end(), T->param_begin(), T->param_end());
	T = FunctionType::get(T->getReturnType(), Types, T->isVarArg());
	Call->getOperandBundlesAsDefs(Bundles);
	Value *Callee = M.getOrInsertFunction(Pointer, FunctionType::get(IR.getVoidTy(), false)).getCallee();
	/* The dynamic linker's resolver at the first call would not keep r10. */
	if (auto *F = dyn_cast<Function>(Callee))
		F->addFnAttr(Attribute::NonLazyBind);
	if (auto *I = dyn_cast<InvokeInst>(Call))
		New = IR.CreateInvoke(T, Callee, I->getNormalDest(), I->getUnwindDest(), Arguments, Bundles);
	else
		New = IR.CreateCall(T, Callee, Arguments, Bundles);
	New->setAttributes(AttributeList::get(C, As.getFnAttrs(), As.getRetAttrs(), Parameters));
	New->setDebugLoc(Call->getDebugLoc());
	New->takeName(Call);
	forget(New);
	Call->replaceAllUsesWith(New);
	Call->eraseFromParent();
}

/* False if the pointer's register is in use, or if the caller must be gone before the call. */
static bool canJump(CallBase *Call)
{
	return !Call->isMustTailCall() && !isa<CallBrInst>(Call) && !Call->hasInAllocaArgument() &&
	       none_of(Call->args(),
		       [&](Use &A) { return Call->paramHasAttr(Call->getArgOperandNo(&A), Attribute::Nest); });
}

/* For a call that cannot jump through the runtime: the runtime returns the twin first. */
static void ask(CallBase *Call)
{
	IRBuilder<> IR(Call);
	Type *P = IR.getPtrTy();
	FunctionCallee Callee = runtime(*Call->getModule(), TwinOf, P, {P});
	CallInst *Ask = IR.CreateCall(Callee, {Call->getCalledOperand()});

	/* The dynamic linker's resolver at the first call would keep fewer registers. */
	cast<Function>(Callee.getCallee())->setCallingConv(CallingConv::PreserveMost);
	cast<Function>(Callee.getCallee())->addFnAttr(Attribute::NonLazyBind);
	Ask->setCallingConv(CallingConv::PreserveMost);
	Call->setCalledOperand(Ask);
}

/* Removes attributes that do not hold for a call that may switch. */
void TwinMaker::forget(CallBase *Call)
{
	Call->removeFnAttr(Attribute::Memory);
	Call->removeFnAttr(Attribute::WillReturn);
	Call->addFnAttr(Attribute::get(C, YieldsAttribute));
}

void TwinMaker::call(CallBase *Call)
{
	auto *Named = dyn_cast<GlobalValue>(Call->getCalledOperand());
	bool IsC = Call->getCallingConv() == CallingConv::C;

	if (Function *F = ours(Call)) {
		if (!MayYield.count(F))
			return;
		Call->setCalledOperand(Twin[F]);
	} else if (Named && IsC)
		Call->setCalledOperand(either(*Named, Call->getFunctionType()));
	else if (!Named && IsC && canJump(Call))
		return byPointer(Call);
	else
		ask(Call);
	forget(Call);
}

void TwinMaker::callsKeepNothing(std::vector<CallBase *> &Calls, StringRef Name)
{
	FunctionCallee Callee = runtime(M, Name, Type::getVoidTy(C), {});

	cast<Function>(Callee.getCallee())->setCallingConv(CallingConv::PreserveNone);
	for (CallBase *Call : Calls) {
		Call->setCalledFunction(Callee);
		Call->setCallingConv(CallingConv::PreserveNone);
		Call->addFnAttr(Attribute::get(C, YieldsAttribute));
	}
}

/*
 * A block on the back-edge and, if possible, on no other path. There is no yield where a loop ends, so the reads of its
 * last condition and the code that follows are one atomic piece of code. A computed goto has no block of its own.
 */
static BasicBlock *wayBack(BasicBlock *From, BasicBlock *To)
{
	Instruction *Jump = From->getTerminator();
	BasicBlock *Between = nullptr;

	if (isa<BranchInst, SwitchInst>(Jump))
		Between = SplitCriticalEdge(Jump, GetSuccessorNumber(From, To),
					    CriticalEdgeSplittingOptions().setMergeIdenticalEdges());
	return Between ? Between : From;
}

/* A child of vfork would switch activities in its parent's memory. POSIX lets vfork be fork. */
static void makeVforkFork(Function &T)
{
	for (Instruction &I : instructions(T))
		if (calls(I, "vfork")) {
			auto *Call = cast<CallBase>(&I);

			Call->setCalledFunction(runtime(*T.getParent(), "fork", Call->getType(), {}));
			Call->removeFnAttr(Attribute::ReturnsTwice);
		}
}

/* An invoke ends its block: a branch takes its place. */
static void erase(CallBase *Call)
{
	if (auto *Invoke = dyn_cast<InvokeInst>(Call))
		Call = changeToCall(Invoke);
	Call->eraseFromParent();
}

CallInst *TwinMaker::mark(StringRef Name, BasicBlock::iterator Before)
{
	return CallInst::Create(runtime(M, Name, Type::getVoidTy(C), {}), "", Before);
}

/* Markers before and after a call. A twin of this file has its own at its entry. A call that throws has none after. */
void TwinMaker::around(CallBase *Call)
{
	auto *Invoke = dyn_cast<InvokeInst>(Call);
	Function *Callee = Call->getCalledFunction();
	auto Own = Callee ? Twin.find(Callee) : Twin.end();
	BasicBlock *After = Invoke ? Invoke->getNormalDest() : Call->getParent();

	if (Own == Twin.end() || !Own->second->hasFnAttribute(EntryAttribute))
		mark(CallMark, Call->getIterator())->setDebugLoc(Call->getDebugLoc());
	if (Call->isMustTailCall())
		return;
	if (Invoke && !After->getSinglePredecessor())
		After = SplitCriticalEdge(Invoke, 0);
	mark(CallMark, Invoke ? After->getFirstInsertionPt() : std::next(Call->getIterator()))
	    ->setDebugLoc(Call->getDebugLoc());
}

/* Completes the twin of F, which is so far a copy of it. */
void TwinMaker::fill(Function &F)
{
	Function &T = *Twin[&F];

	Says[&T] = Says[&F];
	Points Where = points(T);

	for (auto [From, To] : Where.BackEdges)
		mark(LoopMark, wayBack(From, To)->getTerminator()->getIterator());
	for (CallBase *Call : Where.Around)
		around(Call);
	for (CallBase *Call : Where.Calls)
		call(Call);
	callsKeepNothing(Where.Parks, ParkNow);
	callsKeepNothing(Where.GiveWays, YieldNow);
	for (CallBase *Call : Where.Yields) {
		mark(YieldMark, Call->getIterator())->setDebugLoc(Call->getDebugLoc());
		erase(Call);
	}
	for (CallBase *Call : Where.Atomic)
		erase(Call);
	makeVforkFork(T);
	auto Entry = T.getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
	if (T.hasFnAttribute(EntryAttribute))
		mark(CallMark, Entry);
	if (!Where.Calls.empty())
		mark(EntryMark, Entry);
	for (Instruction &I : instructions(T))
		if (auto *Call = dyn_cast<CallInst>(&I); Call && !Call->getDebugLoc() && T.getSubprogram())
			Call->setDebugLoc(DILocation::get(C, T.getSubprogram()->getLine(), 0, T.getSubprogram()));
}

/* The words in front of the function say where its twin is. False: there was an error. */
bool TwinMaker::announce(Function &F)
{
	Function *T = Twin[&F];
	Type *I64 = Type::getInt64Ty(C), *I32 = Type::getInt32Ty(C);

	/* Pointers in other files do not lead to `main`, which calls most of a program. */
	if ((F.hasLocalLinkage() || F.getName() == "main") && !F.hasAddressTaken())
		return true;
	if (!hasWordsInFront(F))
		return false;
	if (T->hasLocalLinkage())
		appendToCompilerUsed(M, {T}); /* the optimizer does not see references from a prefix as uses */
	Constant *Far = ConstantExpr::getTrunc(ConstantExpr::getSub(ConstantExpr::getPtrToInt(T, I64),
								    ConstantExpr::getPtrToInt(&F, I64)),
					       I32);
	/* -fsanitize=function would put words of its own in between. A function without them is not checked. */
	F.setMetadata(LLVMContext::MD_func_sanitize, nullptr);
	F.setAlignment(std::max(F.getAlign().valueOrOne(), Align(FrontAlignment)));
	F.setPrefixData(ConstantStruct::getAnon({ConstantInt::get(I64, Magic), Far, ConstantInt::get(I32, 0)}, true));
	return true;
}

/* Removes the markers that plain code does not need. */
void TwinMaker::dropMarkers()
{
	for (StringRef Name : {NoYieldBegin, NoImplicitBegin, NoYieldEnd, NoImplicitEnd}) {
		Function *F = M.getFunction(Name);

		if (!F)
			continue;
		for (User *U : make_early_inc_range(F->users()))
			if (auto *Call = dyn_cast<CallBase>(U)) {
				if (!Call->getType()->isVoidTy())
					Call->replaceAllUsesWith(ConstantInt::get(Call->getType(), 1));
				erase(Call);
			}
	}
}

/* Adds four bytes: the distance to the place where the linker puts the symbol's address, whichever library has it. */
void TwinMaker::needVersion()
{
	Type *I64 = Type::getInt64Ty(C), *I32 = Type::getInt32Ty(C);
	Constant *Symbol = M.getOrInsertGlobal(Version, Type::getInt8Ty(C));
	auto *Place = new GlobalVariable(M, P, true, GlobalValue::PrivateLinkage, Symbol, "weft.version.place");
	auto *Far = new GlobalVariable(M, I32, true, GlobalValue::PrivateLinkage, nullptr, "weft.version");

	Place->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
	Far->setInitializer(ConstantExpr::getTrunc(ConstantExpr::getSub(ConstantExpr::getPtrToInt(Place, I64),
									ConstantExpr::getPtrToInt(Far, I64)),
						   I32));
	appendToUsed(M, {Far});
}

bool TwinMaker::run()
{
	bool Any = false;

	readAnnotations();
	if (!outlineActivities(M, [&](Body &B) {
		    spawn(B);
		    Any = true;
	    }))
		return true; /* there was an error: nothing is generated */
	whoMayYield();
	if (const char *Path = getenv("WEFT_ACTIVITIES_REPORT"))
		report(Path);
	for (auto &[F, Where] : Of)
		if (MayYield.count(F))
			clone(*F);
	for (auto &[F, T] : Twin)
		fill(*F);
	if (Function *F = M.getFunction(Spawn))
		for (User *U : F->users())
			if (auto *Call = dyn_cast<CallBase>(U))
				if (auto *B = dyn_cast<Function>(Call->getArgOperand(1)); B && Twin.count(B))
					Call->setArgOperand(1, Twin[B]);
	for (auto &[F, T] : Twin)
		if (!announce(*F))
			break; /* the other functions have the same error */
	dropMarkers();
	if (!Twin.empty())
		announceIFuncs(M);
	for (auto &[F, T] : Twin)
		settleMarks(*T, false);
	if (!Twin.empty() || Any)
		needVersion();
	return !Twin.empty() || Any;
}
} // namespace

bool makeTwins(Module &M, FunctionAnalysisManager &FAM)
{
	return TwinMaker(M, FAM).run();
}
} // namespace weft
